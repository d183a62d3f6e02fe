package config

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
)

// nobody is a lane of nobody's.
type nobody struct{ identity.Lane }

func (nobody) Facet() identity.Facet {
	return identity.Facet{Lane: "api-key", Issuers: []string{"urn:x"}, Revocation: "next-request", MinimumAssurance: "bearer"}
}

// The examples in the documentation are files that a host starts with.
func TestExamplesOfTheFileOfIdentity(t *testing.T) {
	doc, err := os.ReadFile("../../docs/identity.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		c, _, err := identityOf(t, string(b[1]), nil)
		if err != nil {
			t.Errorf("%v\n%s", err, b[1])
			continue
		}
		l := c.Lanes
		if l.OIDC == nil {
			if len(l.MTLS.Clients) != 2 || l.MTLS.Window != 24*time.Hour {
				t.Errorf("%+v", l.MTLS)
			}
			continue
		}
		out := identity.Outside{Client: http.DefaultClient, Check: func(*url.URL) error { return nil }}
		if _, err := identity.Build(identity.Config{PublicURL: "https://h.example/api", OIDC: l.OIDC}, nobody{}, out, time.Now); err != nil {
			t.Error(err)
		}
	}
}
