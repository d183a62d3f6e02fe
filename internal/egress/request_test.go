package egress

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	g := New(Options{})
	for raw, want := range map[string]Reason{
		"https://example.com/a?b=c":         "",
		"http://example.com:8080/":          "",
		"https://[2606:4700:4700::1111]/":   "",
		"https://münchen.example/":          "",
		"ftp://example.com/":                Policy,
		"file:///etc/passwd":                Policy,
		"gopher://example.com/":             Policy,
		"//example.com/":                    Policy,
		"https:example.com":                 Policy,
		"https:///path":                     Policy,
		"https://:443/":                     Policy,
		"https://user@example.com/":         Policy,
		"https://user:pw@example.com/":      Policy,
		"https://example.com:0/":            Policy,
		"https://example.com:99999/":        Policy,
		"http://127.0.0.1/":                 Blocked,
		"http://[::1]:8080/":                Blocked,
		"http://[::ffff:169.254.169.254]/":  Blocked,
		"http://[fe80::1%25eth0]/":          Blocked,
		"http://169.254.169.254/latest":     Blocked,
		"http://[fd00:ec2::254]/latest":     Blocked,
		"http://[64:ff9b::a9fe:a9fe]/":      Blocked,
		"http://[2002:7f00:1::]/":           Blocked,
		"http://[64:ff9b:1:a9fe:a9:fe00::]": Blocked,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, _ := DeniedReason(g.CheckURL(u)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	if g.CheckURL(nil) == nil {
		t.Error("nil is let out")
	}
}

func TestCheckRequestBuiltByHand(t *testing.T) {
	g := New(Options{})
	base := func() *http.Request {
		return &http.Request{
			Method: "GET", Header: http.Header{},
			URL: &url.URL{Scheme: "https", Host: "example.com", Path: "/"},
		}
	}
	if err := g.checkRequest(base()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*http.Request){
		"newline in the host":     func(r *http.Request) { r.URL.Host = "example.com\r\nX: y" },
		"NUL in the host":         func(r *http.Request) { r.URL.Host = "example.com\x00.evil" },
		"DEL in the host":         func(r *http.Request) { r.URL.Host = "example.com\x7f" },
		"space in the host":       func(r *http.Request) { r.URL.Host = "example.com " },
		"backslash in the host":   func(r *http.Request) { r.URL.Host = `example.com\@127.0.0.1` },
		"at sign in the host":     func(r *http.Request) { r.URL.Host = "a@127.0.0.1" },
		"newline in Host":         func(r *http.Request) { r.Host = "a\nb" },
		"CONNECT":                 func(r *http.Request) { r.Method = "CONNECT" },
		"upgrade":                 func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
		"opaque":                  func(r *http.Request) { r.URL.Opaque = "//127.0.0.1/" },
		"empty host":              func(r *http.Request) { r.URL.Host = "" },
		"user without a password": func(r *http.Request) { r.URL.User = url.User("") },
	} {
		r := base()
		change(r)
		if got, _ := DeniedReason(g.checkRequest(r)); got != Policy {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRefusedRequestClosesItsBody(t *testing.T) {
	body := &watched{Reader: strings.NewReader("x")}
	req, err := http.NewRequest("POST", "http://127.0.0.1/", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := New(Options{}).Client().Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if reason, _ := DeniedReason(err); reason != Blocked || !body.shut {
		t.Errorf("%v, closed = %v", err, body.shut)
	}
}

type watched struct {
	*strings.Reader
	shut bool
}

func (w *watched) Close() error { w.shut = true; return nil }
