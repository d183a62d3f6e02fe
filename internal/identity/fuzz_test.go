package identity_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
	"github.com/fermata-run/fermata/internal/problem"
)

// registered asks that whatever comes of hostile bytes is a caller whom the issuer
// has named, or a refusal with a code of a credential.
func registered(t *testing.T, err error) {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) {
		t.Fatalf("not a refusal: %v", err)
	}
	if s := p.Status(); s != 401 && s != 403 && s != 400 {
		t.Fatalf("refused with %d %s", s, p.Code)
	}
}

// FuzzAuthorization lets nobody in but who presents a token of the issuer.
func FuzzAuthorization(f *testing.F) {
	l := newLab(f, nil)
	good := l.idp.Token(l.standard())
	if _, err := l.bearer(good); err != nil { // keys are fetched once, not by the fuzzer
		f.Fatal(err)
	}
	parts := strings.Split(good, ".")
	for _, s := range []string{
		"Bearer " + good, "DPoP " + good, "bearer ey.ey.ey", "Bearer " + parts[0] + "." + parts[1] + ".", "Bearer " + parts[0] + ".." + parts[2],
		"Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer fermata_x", "Basic eA==", "", "Bearer", "Bearer \x00",
	} {
		f.Add(s, "eyJ.eyJ.x")
	}
	f.Fuzz(func(t *testing.T, header, proof string) {
		r := request(header)
		r.Header.Set("DPoP", proof)
		c, err := l.pipe.Authenticate(r)
		if err == nil {
			if _, token, _ := strings.Cut(header, " "); token != good || c.Subject.SubjectID != "ann" {
				t.Fatalf("%q became %+v", header, c)
			}
			return
		}
		registered(t, err)
	})
}

// FuzzClaims signs whatever it is given with the issuer's key: no claims may break
// the reading of them, or make a caller that is none.
func FuzzClaims(f *testing.F) {
	l := newLab(f, nil)
	good, _ := json.Marshal(l.standard())
	if _, err := l.bearer(l.idp.Token(l.standard())); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(good), `{}`, `[]`, `null`, `{"act":{"act":{"act":{"act":{"act":{}}}}}}`, `{"cnf":{"jkt":["a"]}}`,
		strings.Replace(string(good), `"ann"`, `"a/b"`, 1), strings.Replace(string(good), `"sub"`, `"act":{"sub":"x","scope":"a:b"},"sub"`, 1),
		strings.Replace(string(good), `"exp":`, `"exp":1e`, 1), strings.Replace(string(good), `{`, `{"groups":[1],`, 1),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > 8<<10 {
			return
		}
		k := l.idp.Key()
		c, err := l.bearer(idptest.Sign(k.Key.(*ecdsa.PrivateKey), map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": k.KeyID}, payload))
		if err != nil {
			registered(t, err)
			return
		}
		if c.Tenant() != "acme" || c.Subject.Issuer != l.idp.URL || c.Subject.SubjectID == "" || c.Holds("fermata:no:such:scope") || c.Assurance != identity.Bearer {
			t.Fatalf("%s became %+v", payload, c)
		}
	})
}
