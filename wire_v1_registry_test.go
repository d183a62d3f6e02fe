package fermata_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// A host that is no registry of packs answers there as if it were no host of this
// protocol: that is how v1's clients see it.
func TestV1NoRegistry(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	for _, path := range []string{"/v1/packs/-/search?q=", "/v1/packs/core.x/-/1.0.0.json", "/v1/packs-test/x"} {
		res, err := http.Get(s.http.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		h := res.Header
		if err != nil || res.StatusCode != 404 || json.Valid(body) || h.Get("OpenWOP-Version") != "1.0" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v %v %v %s", path, err, res.StatusCode, h, body)
		}
	}
	s.do("GET", "/v1/packages", nil).refused(t, 404, "not_found")
	s.do("GET", "/packs/-/search", nil).refused(t, 404, "not_found")
}
