package fermata_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// TestHashedValuesCannotBeGuessed masks a value of which there are few by hash: it
// can be compared with others of the tenant, in other runs and after a restart, and
// with nothing that somebody without the host's secret could compute.
func TestHashedValuesCannotBeGuessed(t *testing.T) {
	secret := flow("pin", []any{step("keep", "core.flow.set", map[string]any{"variables": map[string]any{"copy": "variables.pin"}})}, []any{},
		map[string]any{
			"variables": []any{
				map[string]any{"name": "pin", "type": "string", "sensitive": true},
				map[string]any{"name": "copy", "type": "string", "sensitive": true},
			},
			"metadata": map[string]any{"complianceConfig": map[string]any{"maskingMode": "hash"}},
		})
	hashes := func(s *server, pin string) []string {
		id := s.run("pin", map[string]any{"inputs": map[string]any{"pin": pin}})
		vars := s.await(id, "completed")["variables"].(map[string]any)
		first := s.events(id)[0]["payload"].(map[string]any)["inputs"].(map[string]any)
		return []string{vars["pin"].(string), vars["copy"].(string), first["pin"].(string)}
	}
	s := start(t)
	s.register(secret)
	want := hashes(s, "1234")
	plain := sha256.Sum256([]byte(`"1234"`))
	for _, h := range want {
		if h != want[0] || !strings.HasPrefix(h, "sha256:") || len(h) != len("sha256:")+64 {
			t.Errorf("equal values are masked as %q", want)
		}
		if h == "sha256:"+hex.EncodeToString(plain[:]) {
			t.Error("the hash is one that anybody can compute")
		}
	}
	if other := hashes(s, "1235"); other[0] == want[0] {
		t.Error("other values have the same hash")
	}
	s.restart()
	if again := hashes(s, "1234"); again[0] != want[0] {
		t.Error("a restart changes the hashes")
	}
	elsewhere := start(t)
	elsewhere.register(secret)
	if other := hashes(elsewhere, "1234"); other[0] == want[0] {
		t.Error("two hosts hash alike")
	}
}
