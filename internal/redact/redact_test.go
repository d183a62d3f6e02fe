package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/redact"
	"pgregory.net/rapid"
)

const secret = `a"b\c/d é+12`

func knowing(values ...string) *redact.Redactor {
	r := redact.New()
	for i, v := range values {
		r.Know("acme", fmt.Sprint("c", i), v)
	}
	return r
}

func TestText(t *testing.T) {
	r := knowing(secret, "longer-secret-tail", "longer-secret")
	for in, want := range map[string]string{
		"":                            "",
		"nothing":                     "nothing",
		"x " + secret + " y":          "x [REDACTED:c0] y",
		secret + secret:               "[REDACTED:c0][REDACTED:c0]",
		"longer-secret-tail":          "[REDACTED:c1]", // the longest of those that begin alike
		"longer-secret-other":         "[REDACTED:c2]-other",
		`"a\"b\\c/d é+12"`:            `"[REDACTED:c0]"`,
		"k=a%22b%5Cc%2Fd+%C3%A9%2B12": "k=[REDACTED:c0]",
		base64.StdEncoding.EncodeToString([]byte(secret)): "[REDACTED:c0]",
		"6122625C632F6420C3A92B3132":                      "[REDACTED:c0]",
		"key fermata_0123456789abcdefgh!":                 "key [hidden]!",
		"ow2.abcdefghijklmnopqrs.tuv":                     "[hidden]",
		"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODk=":              "[hidden]",
		"Basic authentication of a bearer of bad news":    "Basic authentication of a bearer of bad news",
	} {
		if got := r.Text("acme", in); got != want {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
	if got := r.Text("beta", secret); got != secret {
		t.Errorf("another tenant's secret is taken out of a text: %q", got)
	}
	r.Know("", "host", "the-hosts-own")
	if got := r.Text("beta", "the-hosts-own"); got != "[REDACTED:host]" {
		t.Errorf("%q", got)
	}
	if got := r.Known("acme", "fermata_0123456789abcdefgh "+secret); got != "fermata_0123456789abcdefgh [REDACTED:c0]" {
		t.Errorf("%q", got)
	}
	var none *redact.Redactor
	none.Know("acme", "x", secret)
	if got := none.Text("acme", secret+" fermata_0123456789abcdefgh"); got != secret+" [hidden]" {
		t.Errorf("%q", got)
	}
}

func TestJSON(t *testing.T) {
	r := knowing(secret, "123456789")
	for in, want := range map[string]string{
		`{"a":1, "b" : [true]}`:              `{"a":1, "b" : [true]}`, // to the byte
		`{"a":"x\u00e9\n"}`:                  `{"a":"x\u00e9\n"}`,
		`{"a":"a\"b\\c/d \u00e9+12"}`:        `{"a":"[REDACTED:c0]"}`,
		`{"a\"b\\c\/d \u00E9\u002b12":null}`: `{"[REDACTED:c0]":null}`,
		`[123456789,-123456789e2,1.5]`:       `["[REDACTED:c1]","-[REDACTED:c1]e2",1.5]`,
		`"whsec_zyxwvutsrqponmlk<>&"`:        `"[hidden]<>&"`,
		`123456789`:                          `"[REDACTED:c1]"`,
		`not json "a\"b\\c/d é+12" { 1`:      `not json "[REDACTED:c0]" { 1`,
		``:                                   ``,
	} {
		if got := string(r.JSON("acme", []byte(in))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
}

// Whatever a document is, it stays JSON, holds no secret, and is left alone if it
// held none.
func TestJSONProperty(t *testing.T) {
	words := []string{secret, "12345678", "true-or-false", "plain", "\u2028\x00\"", "é", "[REDACTED", "fermata-"}
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfNDistinct(rapid.SampledFrom(words[:3]), 0, 3, rapid.ID[string]).Draw(t, "secrets")
		r := knowing(secrets...)
		var value func(depth int) any
		text := func() string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "text"), "")
		}
		value = func(depth int) any {
			switch n := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case n == 0 && depth < 4:
				m := map[string]any{}
				for range rapid.IntRange(0, 3).Draw(t, "members") {
					m[text()] = value(depth + 1)
				}
				return m
			case n == 1 && depth < 4:
				var l []any
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					l = append(l, value(depth+1))
				}
				return l
			case n == 2:
				return json.Number(rapid.SampledFrom([]string{"1", "12345678", "912345678e4"}).Draw(t, "number"))
			}
			return text()
		}
		doc, err := json.Marshal(value(0))
		if err != nil {
			t.Fatal(err)
		}
		got := r.JSON("acme", doc)
		if !json.Valid(got) {
			t.Fatalf("%s became %s", doc, got)
		}
		var all any
		if json.Unmarshal(got, &all) != nil {
			t.Fatal("cannot be read")
		}
		flat := fmt.Sprint(all)
		held := false
		for _, s := range secrets {
			var before any
			_ = json.Unmarshal(doc, &before)
			held = held || strings.Contains(fmt.Sprint(before), s) || strings.Contains(string(doc), s)
			if strings.Contains(flat, s) {
				t.Fatalf("%q is still in %s", s, got)
			}
		}
		if !held && !bytes.Equal(got, doc) {
			t.Fatalf("%s was changed to %s", doc, got)
		}
	})
}

// A text that comes in pieces is held back as long as it may become a secret.
func TestHold(t *testing.T) {
	r := knowing("0123456789")
	for in, want := range map[string]int{"": 0, "x": 0, "0": 1, "x012": 3, "x012y": 0, "0123456789": 0, "00": 1, "012345678": 9} {
		if got := r.Hold("acme", in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"0123456789", "012", "9", "x", "0"}), 0, 8).Draw(t, "text"), "")
		var out strings.Builder
		rest := ""
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "cut")
			piece := rest + text[:n]
			text = text[n:]
			k := r.Hold("acme", piece)
			if text == "" {
				k = 0
			}
			out.WriteString(r.Text("acme", piece[:len(piece)-k]))
			rest = piece[len(piece)-k:]
		}
		if strings.Contains(out.String(), "0123456789") {
			t.Fatalf("got out: %s", out.String())
		}
	})
}

// What is remembered has a bound, and the newest stays.
func TestBound(t *testing.T) {
	r := redact.New()
	for i := range 2500 {
		r.Know("acme", "x", fmt.Sprintf("secret-number-%05d", i))
	}
	if got := r.Text("acme", "secret-number-02499"); got != "[REDACTED:x]" {
		t.Errorf("%q", got)
	}
	if got := r.Text("acme", "secret-number-00000"); got == "[REDACTED:x]" {
		t.Error("nothing is ever forgotten")
	}
	r.Know("acme", "short", "1234567")
	if got := r.Text("acme", "1234567"); got != "1234567" {
		t.Errorf("%q", got)
	}
	r.Know("", "host", "the-hosts-own")
	for i := range 10_050 {
		r.Know(fmt.Sprint("t", i), "x", "a-secret-of-it")
	}
	if got := r.Text("t3", "the-hosts-own"); got != "[REDACTED:host]" {
		t.Errorf("the host's own secrets are forgotten with those of tenants: %q", got)
	}
}

type shy struct{ Value, Password string }

func TestLog(t *testing.T) {
	r := knowing(secret)
	var b bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
		log := slog.New(redact.Handler(h, r)).With("with", secret, slog.Group("g", "in", secret)).WithGroup("named")
		log.Info("said "+secret, "err", fmt.Errorf("x: %w", errors.New(secret)), "any", shy{secret, "hunter2"}, "map", map[string]any{secret: []any{secret}},
			"bytes", []byte(secret), "authorization", "Bearer abcdefgh", "url", "https://user:pw@a.example/?k="+secret)
	}
	for _, bad := range []string{"é+12", "a%22b", "hunter2", "abcdefgh", "user:pw", "u00e9"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%s is in %s", bad, b.String())
		}
	}
	if n := strings.Count(b.String(), "[REDACTED:c0]"); n < 12 {
		t.Errorf("only %d masks in %s", n, b.String())
	}
}

func BenchmarkJSON(b *testing.B) {
	r := redact.New()
	for i := range 50 {
		r.Know("acme", "x", fmt.Sprintf("secret-number-%05d-%05d", i, i))
	}
	doc := []byte(`{"nodeId":"charge","outputs":{"status":200,"body":{"id":"ch_123","amount":1200,"currency":"eur","note":"thanks for your order"}},"durationMs":12}`)
	b.ReportAllocs()
	for b.Loop() {
		r.JSON("acme", doc)
	}
}
