package token

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

var secret = bytes.Repeat([]byte{7}, MinSecret)

func claims() Claims {
	run := ids.Run{Tenant: "acme", Opaque: "run-0000000000000001"}
	return Claims{
		Run: run, NodeID: "gate", Interrupt: ids.Interrupt(run, "gate", 1, 0), Intent: Resolve,
		ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
		Subject:   event.Subject{Issuer: "urn:test", SubjectID: "ann", Tenant: "acme", Lane: "api-key", Kind: "user"},
	}
}

func sign(t testing.TB, kid string, c Claims) string {
	t.Helper()
	s, err := Sign(kid, secret, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(s string, key []byte) (Claims, error) {
	u, err := Parse(s)
	if err != nil {
		return Claims{}, err
	}
	return u.Verify(key)
}

func TestRoundTrip(t *testing.T) {
	for _, kid := range []string{"k1", "a.b.c", "~", strings.Repeat("k", 128)} {
		want := claims()
		s := sign(t, kid, want)
		if !strings.HasPrefix(s, "ow2.hs256."+kid+".") {
			t.Errorf("%s", s)
		}
		u, err := Parse(s)
		if err != nil || u.Kid != kid {
			t.Fatalf("kid %q, %v", u.Kid, err)
		}
		if got, err := u.Verify(secret); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// A token of v1 states the same, and its key stands within.
func TestOlderRoundTrip(t *testing.T) {
	for _, kid := range []string{"k1", "a.b.c", LegacyKid} {
		want := claims()
		s, err := SignOlder(kid, secret, want)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(s, ".")
		body, err := base64.RawURLEncoding.DecodeString(head)
		if err != nil || strings.Count(s, ".") != 1 || !strings.HasPrefix(string(body), `{"runId":"run-0000000000000001","nodeId":"gate",`) {
			t.Errorf("%s: %v", s, err)
		}
		u, err := Parse(s)
		if err != nil || u.Kid != kid {
			t.Fatalf("kid %q, %v", u.Kid, err)
		}
		if got, err := u.Verify(secret); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
		for i := range len(s) {
			for _, c := range []byte{'A', 'B', '.', '-', '=', 0, '\n', s[i] ^ 1} {
				if c == s[i] {
					continue
				}
				if _, err := read(s[:i]+string(c)+s[i+1:], secret); err == nil {
					t.Fatalf("byte %d as %q is accepted", i, c)
				}
			}
			if _, err := read(s[:i], secret); err == nil {
				t.Fatalf("cut at byte %d: accepted", i)
			}
		}
		for name, key := range map[string][]byte{"another": bytes.Repeat([]byte{8}, MinSecret), "short": secret[:8], "none": nil} {
			if _, err := read(s, key); err == nil {
				t.Errorf("%s key verifies", name)
			}
		}
	}
}

// A host of v1 named no key: such a token is held against the one called legacy. What
// a key has signed in one form is nothing in the other.
func TestOlderForms(t *testing.T) {
	good := `{"runId":"run-0000000000000001","nodeId":"gate","interruptId":"aaaaaaaaaaaaaaaa","expiresAt":"2026-01-02T03:04:05.006Z",` +
		`"intent":"resolve","subject":{"issuer":"i","subjectId":"s","tenant":"acme","lane":"api-key","kind":"user"}}`
	forge := func(body string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(body)) + "." + base64.RawURLEncoding.EncodeToString(mac(secret, body))
	}
	u, err := Parse(forge(good))
	if err != nil || u.Kid != LegacyKid {
		t.Fatalf("kid %q, %v", u.Kid, err)
	}
	if c, err := u.Verify(secret); err != nil || c.Run.String() != "acme/run-0000000000000001" {
		t.Fatalf("%+v, %v", c, err)
	}
	for old, bad := range map[string]string{
		`"resolve"`: `"admin"`, `"tenant":"acme"`: `"tenant":""`, `"gate"`: `"a b"`, `"2026-01-02T03:04:05.006Z"`: `"soon"`,
		`{"runId"`: `{"more":1,"runId"`, `"subjectId":"s"`: `"subjectId":""`, `"intent":"resolve",`: `"intent":"inspect","intent":"resolve",`,
		`"run-0000000000000001"`: `"acme/run-0000000000000001"`, `"intent"`: `"kid":"no kid","intent"`,
	} {
		if _, err := read(forge(strings.Replace(good, old, bad, 1)), secret); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	for _, body := range []string{"{}", "null", "[]", "", "\xff", good + good, "ow2.hs256.k1." + good} {
		if _, err := read(forge(body), secret); err == nil {
			t.Errorf("%q is accepted", body)
		}
	}
	if _, err := SignOlder("", secret, claims()); err == nil {
		t.Error("a key without a name signs")
	}
}

// Any other string than the one that was signed is refused: each byte of it
// counts, and so does its length.
func TestEveryByteCounts(t *testing.T) {
	s := sign(t, "k1", claims())
	for i := range len(s) {
		for _, c := range []byte{'A', 'B', '.', '-', '=', 0, '\n', s[i] ^ 1} {
			if c == s[i] {
				continue
			}
			if _, err := read(s[:i]+string(c)+s[i+1:], secret); err == nil {
				t.Fatalf("byte %d as %q is accepted", i, c)
			}
		}
		for _, cut := range []string{s[:i], s[i+1:], s[:i] + s[i+1:]} {
			if _, err := read(cut, secret); err == nil {
				t.Fatalf("without byte %d: accepted", i)
			}
		}
	}
	for _, more := range []string{s + "=", s + "A", s + ".", " " + s, s + "\n", s + "." + s, strings.ToUpper(s)} {
		if _, err := read(more, secret); err == nil {
			t.Errorf("%q is accepted", more)
		}
	}
}

// A signature holds for its own key, kid and algorithm only.
func TestOtherKeys(t *testing.T) {
	s := sign(t, "k1", claims())
	for name, key := range map[string][]byte{
		"another": bytes.Repeat([]byte{8}, MinSecret), "longer": append(bytes.Clone(secret), 1), "short": secret[:8], "none": nil,
	} {
		if _, err := read(s, key); err == nil {
			t.Errorf("%s key verifies", name)
		}
	}
	for _, other := range []string{
		strings.Replace(s, ".k1.", ".k2.", 1), strings.Replace(s, "hs256", "none", 1), strings.Replace(s, "hs256", "HS256", 1),
		strings.Replace(s, "hs256", "hs512", 1), strings.Replace(s, "ow2", "ow3", 1), strings.TrimPrefix(s, "ow2.hs256.k1."),
	} {
		if _, err := read(other, secret); err == nil {
			t.Errorf("%s verifies", other)
		}
	}
}

// What is signed must also make sense: a signed payload of another shape is no
// token.
func TestSignedNonsense(t *testing.T) {
	good := `{"runId":"acme/run-0000000000000001","nodeId":"gate","interruptId":"acme/aaaaaaaaaaaaaaaa","intent":"resolve",` +
		`"expiresAt":"2026-01-02T03:04:05.006Z","subject":{"issuer":"i","subjectId":"s","tenant":"acme","lane":"api-key","kind":"user"}}`
	forge := func(body string) string {
		head := "ow2.hs256.k1." + base64.RawURLEncoding.EncodeToString([]byte(body))
		return head + "." + base64.RawURLEncoding.EncodeToString(mac(secret, head))
	}
	if _, err := read(forge(good), secret); err != nil {
		t.Fatal(err)
	}
	for old, bad := range map[string]string{
		`"resolve"`: `"admin"`, `"acme/run-`: `"other/run-`, `"acme/aaaa`: `"other/aaaa`, `"tenant":"acme"`: `"tenant":"other"`,
		`"gate"`: `"a b"`, `"2026-01-02T03:04:05.006Z"`: `"soon"`, `{"runId"`: `{"more":1,"runId"`, `"subjectId":"s"`: `"subjectId":""`,
		`"intent":"resolve",`: `"intent":"inspect","intent":"resolve",`, `,"subject"`: `,"Subject"`,
	} {
		if _, err := read(forge(strings.Replace(good, old, bad, 1)), secret); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	for _, body := range []string{"{}", "null", "[]", "", "\xff", good + good} {
		if _, err := read(forge(body), secret); err == nil {
			t.Errorf("%q is accepted", body)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	for name, change := range map[string]func(*Claims){
		"no intent": func(c *Claims) { c.Intent = "" }, "no end": func(c *Claims) { c.ExpiresAt = time.Time{} },
		"other tenant": func(c *Claims) { c.Interrupt.Tenant = "other" }, "nobody": func(c *Claims) { c.Subject.SubjectID = "" },
		"no node": func(c *Claims) { c.NodeID = "" }, "too long": func(c *Claims) { c.Subject.Issuer = strings.Repeat("i", MaxLength) },
	} {
		c := claims()
		change(&c)
		if s, err := Sign("k1", secret, c); err == nil {
			t.Errorf("%s: signed as %s", name, s)
		}
	}
	for _, kid := range []string{"", "a b", "k/1", strings.Repeat("k", 129)} {
		if _, err := Sign(kid, secret, claims()); err == nil {
			t.Errorf("kid %q signs", kid)
		}
	}
	if _, err := Sign("k1", secret[1:], claims()); err == nil {
		t.Error("a short key signs")
	}
}

// Whatever comes in, reading it ends without a fault, and only what Sign would
// write again is accepted.
func FuzzParse(f *testing.F) {
	s := sign(f, "k.1", claims())
	older, err := SignOlder("k.1", secret, claims())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{s, "", "ow2.hs256.k.p.m", "ow2.hs256..." + s, s[:40], "b3A.0123", strings.Repeat(".", 50), older, older[:60]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		u, err := Parse(in)
		if err != nil {
			return
		}
		head := u.head
		if u.older {
			head = encoding.EncodeToString([]byte(u.head))
		}
		if !ValidKid(u.Kid) || head+"."+encoding.EncodeToString(u.mac) != in {
			t.Fatalf("%q is read as something else", in)
		}
		c, err := u.Verify(secret)
		if err != nil {
			return
		}
		again, err := Sign(u.Kid, secret, c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(again, secret); err != nil || got != c {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}
