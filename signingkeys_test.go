package fermata_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

func openWithKeys(t *testing.T, text []byte) (*fermata.Host, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), SigningKeys: file})
	if err == nil {
		t.Cleanup(func() { _ = h.Stop(context.Background()) })
	}
	return h, err
}

// headed writes a key with headers.
func headed(t *testing.T, key []byte, headers map[string]string) []byte {
	t.Helper()
	b, _ := pem.Decode(key)
	b.Headers = headers
	return pem.EncodeToMemory(b)
}

func TestSigningKeysAreInDiscovery(t *testing.T) {
	t.Parallel()
	_, first, err := conformance.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	_, second, _ := conformance.NewSigningKey()
	h, err := openWithKeys(t, append(first, headed(t, second, map[string]string{"Key-Id": "old-one", "Retired-At": "2026-11-01T00:00:00Z"})...))
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/.well-known/openwop", nil))
	var doc struct {
		SigningKeys []struct{ KeyID, Alg, PublicKey, Use, RetiredAt string }
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || len(doc.SigningKeys) != 2 {
		t.Fatalf("%v %s", err, rec.Body)
	}
	public, err := conformance.ReadPublicKey(first)
	if err != nil {
		t.Fatal(err)
	}
	if k := doc.SigningKeys[0]; k.KeyID != conformance.KeyID(public) || k.Alg != "ed25519" || k.RetiredAt != "" {
		t.Errorf("%+v", k)
	}
	if k := doc.SigningKeys[1]; k.KeyID != "old-one" || k.RetiredAt != "2026-11-01T00:00:00Z" {
		t.Errorf("a retired key: %+v", k)
	}
}

func TestSigningKeysRefusals(t *testing.T) {
	t.Parallel()
	private, public, err := conformance.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	ca, _, _ := conformance.NewAuthority()
	for want, text := range map[string][]byte{
		"holds no public key":    []byte("nothing here"),
		"holds a private key":    private,
		"asn1":                   ca,
		"two keys have the id":   append(public, public...),
		"is not a key id":        headed(t, public, map[string]string{"Key-Id": "a b"}),
		"is not a time":          headed(t, public, map[string]string{"Retired-At": "yesterday"}),
		"has the unknown header": headed(t, public, map[string]string{"Proc-Type": "x"}),
	} {
		if _, err := openWithKeys(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
