package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

const canary = "fermata_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_"

func logger(t *testing.T, o Options) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var b bytes.Buffer
	l, err := New(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	return l, &b
}

func TestText(t *testing.T) {
	l, b := logger(t, Options{Terminal: true})
	l.Info("listening", "address", "127.0.0.1:7411", "note", "two words", "took", 1500*time.Millisecond, "empty", "")
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} INFO  listening address=127\.0\.0\.1:7411 note="two words" took=1\.5s empty=""\n$`)
	if !want.MatchString(b.String()) {
		t.Errorf("got %q", b)
	}
	b.Reset()
	l.WithGroup("run").With("id", 7).Warn("slow\x1b[31m", slog.Group("node", "id", "a\nb"))
	if s := b.String(); !strings.Contains(s, `WARN  slow\x1b[31m run.id=7 run.node.id="a\nb"`) || strings.Contains(s, "\x1b") {
		t.Errorf("got %q", s)
	}
	b.Reset()
	l.Debug("quiet")
	if b.Len() > 0 {
		t.Errorf("debug is shown: %q", b)
	}
}

func TestColour(t *testing.T) {
	l, b := logger(t, Options{Terminal: true, Colour: true, Level: "debug"})
	l.Error("bad", "k", 1)
	if s := b.String(); !strings.Contains(s, "\x1b[31mERROR\x1b[0m bad \x1b[2mk=\x1b[0m1\n") {
		t.Errorf("got %q", s)
	}
}

func TestFormats(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		json bool
	}{
		{Options{}, true}, {Options{Format: "auto"}, true}, {Options{Terminal: true}, false},
		{Options{Format: "json", Terminal: true}, true}, {Options{Format: "text"}, false},
	} {
		l, b := logger(t, tc.o)
		l.Info("x", "n", 1)
		if json.Valid(b.Bytes()) != tc.json {
			t.Errorf("%+v: %q", tc.o, b)
		}
	}
	for _, o := range []Options{{Level: "loud"}, {Format: "xml"}} {
		if _, err := New(&bytes.Buffer{}, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

type account struct {
	Name   string
	APIKey string `json:"apiKey"`
	Inner  map[string]any
}

type stringer struct{ s string }

func (s stringer) String() string { return s.s }

// Whatever way a secret is handed to the logger, it does not come out.
func TestNoSecretIsLogged(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		l, b := logger(t, Options{Format: format, Level: "debug"})
		hide := "opensesame-0123"
		l.Info("key " + canary + " was used")
		l.Info("m", "note", "key="+canary)
		l.Info("m", "err", errors.New("401 for Authorization: Bearer "+hide))
		l.Info("m", "error", errors.New(canary))
		l.Info("m", "who", stringer{canary})
		l.Info("m", "raw", []byte(canary))
		l.Info("m", "v", []string{"a", canary})
		l.Info("m", "header", http.Header{"Authorization": {"Bearer " + hide}, "X-Api-Key": {hide}})
		l.Info("m", "account", account{Name: "n", APIKey: hide, Inner: map[string]any{"token": hide, "deep": []any{"x " + canary}}})
		l.Info("m", slog.Group("req", "cookie", hide, "ok", 1, slog.Group("inner", "password", hide)))
		l.With("api_key", hide, "g", canary).Info("m")
		l.WithGroup("secret").With("clientSecret", hide).Info("m", "X-API-Key", hide, "accessToken", hide, "Authorization", hide)
		if s := b.String(); strings.Contains(s, hide) || strings.Contains(s, canary) || strings.Contains(s, canary[8:]) {
			t.Errorf("%s: a secret got out:\n%s", format, s)
		}
		if !strings.Contains(b.String(), Masked) || !strings.Contains(b.String(), "was used") {
			t.Errorf("%s: too much is gone:\n%s", format, b)
		}
	}
}

// What only looks a little like a secret stays readable.
func TestHarmlessAttributesStay(t *testing.T) {
	l, b := logger(t, Options{Format: "json"})
	l.Info("fermata_run took basic steps", "key", "k", "tokens", 12, "workflow", "fermata_demo", "data", map[string]int{"n": 1 << 60}, "about", "basic validation failed", "token", "")
	s := b.String()
	for _, want := range []string{"fermata_run took basic steps", `"key":"k"`, `"tokens":12`, `"fermata_demo"`, `{"n":1152921504606846976}`, "basic validation failed", `"token":""`} {
		if !strings.Contains(s, want) {
			t.Errorf("%s is missing in %s", want, s)
		}
	}
}

func TestInterruptTokensAreHidden(t *testing.T) {
	const token = "ow2.hs256.it-AbCd.eyJydW5JZCI6ImFjbWUvcnVuIn0.UG6Rl3KHdAF0vVyTr7mfxP6d8m8aA2ZA85qZpZ95rMI"
	for _, format := range []string{"text", "json"} {
		l, b := logger(t, Options{Format: format})
		l.Info("GET /interrupts/"+token, "path", "/interrupts/"+token+"/x", "scheme", "ow2.hs256")
		if s := b.String(); strings.Contains(s, "eyJ") || strings.Contains(s, "UG6R") || !strings.Contains(s, "ow2.hs256") {
			t.Errorf("%s", s)
		}
	}
}
