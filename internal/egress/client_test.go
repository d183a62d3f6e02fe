package egress

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func guard(t *testing.T, opts Options) *Guard {
	t.Helper()
	if opts.AllowPrefixes == nil {
		opts.AllowPrefixes = loopback
	}
	g := New(opts)
	t.Cleanup(g.Close)
	return g
}

func get(t *testing.T, c *http.Client, u string) (*http.Response, error) {
	t.Helper()
	resp, err := c.Get(u)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func TestLoopbackIsClosedByDefault(t *testing.T) {
	hit := false
	s := serve(t, func(http.ResponseWriter, *http.Request) { hit = true })
	for _, u := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
		if _, err := get(t, New(Options{}).Client(), u); err == nil {
			t.Errorf("%s was called", u)
		} else if reason, _ := DeniedReason(err); reason != Blocked {
			t.Errorf("%s: %v", u, err)
		}
	}
	if hit {
		t.Error("the server saw a request")
	}
}

func TestNoRedirectIsFollowedUnlessTold(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/next", http.StatusFound) })
	resp, err := get(t, guard(t, Options{}).Client(), s.URL)
	if err != nil || resp.StatusCode != 302 || resp.Header.Get("Location") != "/next" {
		t.Fatal(resp, err)
	}
}

func TestRedirectHopsAreJudged(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this machine has no second loopback address")
	}
	hit := false
	hidden := &httptest.Server{Listener: inner, Config: &http.Server{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }),
	}}
	hidden.Start()
	defer hidden.Close()
	var to string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	c := guard(t, Options{}).RedirectClient()
	for target, want := range map[string]Reason{
		hidden.URL:                        Blocked,
		"http://[::1]:1/":                 Blocked,
		"http://169.254.169.254/latest":   Blocked,
		"http://u:p@" + s.URL[7:]:         Policy,
		"file:///etc/passwd":              Policy,
		"http://[::ffff:169.254.169.254]": Blocked,
	} {
		to = target
		_, err := get(t, c, s.URL)
		if reason, _ := DeniedReason(err); reason != want {
			t.Errorf("%s: %v", target, err)
		}
	}
	if hit {
		t.Error("the hidden server was reached")
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	n := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { n++; http.Redirect(w, r, "/", http.StatusFound) })
	_, err := get(t, guard(t, Options{}).RedirectClient(), s.URL)
	if reason, _ := DeniedReason(err); reason != Policy || n != maxRedirects+1 {
		t.Errorf("%d requests, %v", n, err)
	}
}

func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	var seen []http.Header
	var home *httptest.Server
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		http.Redirect(w, r, home.URL+"/end", http.StatusTemporaryRedirect)
	})
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/same", http.StatusTemporaryRedirect)
		case "/same":
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		}
	})
	req, _ := http.NewRequest("POST", home.URL+"/?key=in-the-query", strings.NewReader("{}"))
	for k, v := range map[string]string{
		"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-Api-Key": "s3cret",
		"Idempotency-Key": "k", "Content-Type": "application/json",
	} {
		req.Header.Set(k, v)
	}
	resp, err := guard(t, Options{}).RedirectClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(seen) != 4 {
		t.Fatalf("%d requests", len(seen))
	}
	for i, h := range seen {
		secret := h.Get("Authorization") != "" && h.Get("X-Api-Key") != "" && h.Get("Cookie") != ""
		some := h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" || h.Get("Cookie") != "" ||
			strings.Contains(h.Get("Referer"), "in-the-query")
		if i < 2 && !secret {
			t.Errorf("request %d lost its credentials: %v", i, h)
		}
		if i >= 2 && some {
			t.Errorf("request %d still has them: %v", i, h)
		}
		if h.Get("Idempotency-Key") != "k" || h.Get("Content-Type") != "application/json" {
			t.Errorf("request %d lost what it needs: %v", i, h)
		}
	}
}

func TestFollowRefusesToLeaveTLS(t *testing.T) {
	hop := func(raw string) *http.Request {
		u, _ := url.Parse(raw)
		return &http.Request{URL: u, Header: http.Header{"X-Api-Key": {"s"}}}
	}
	if err := follow(hop("http://a.example/"), []*http.Request{hop("https://a.example/")}); err == nil {
		t.Error("followed from https to http")
	}
	for next, kept := range map[string]bool{
		"https://A.example:443/x": true, "https://a.example/x": true,
		"https://b.a.example/": false, "https://a.example:444/": false,
	} {
		r := hop(next)
		if err := follow(r, []*http.Request{hop("https://a.example/")}); err != nil {
			t.Errorf("%s: %v", next, err)
		}
		if got := r.Header.Get("X-Api-Key") != ""; got != kept {
			t.Errorf("%s: key kept = %v", next, got)
		}
	}
}

func TestBodyIsCappedAfterDecompression(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		chunk := make([]byte, 64<<10)
		for range 64 {
			_, _ = z.Write(chunk)
		}
		_ = z.Close()
	})
	resp, err := get(t, guard(t, Options{MaxBodyBytes: 100_000}).Client(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	var large *TooLarge
	if !errors.As(err, &large) || large.Limit != 100_000 || len(b) != 100_000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestReadAll(t *testing.T) {
	for _, c := range []struct {
		body  string
		limit int64
		ok    bool
	}{{"", 0, true}, {"a", 0, false}, {"abc", 3, true}, {"abcd", 3, false}, {"a", -5, false}} {
		b, err := ReadAll(strings.NewReader(c.body), c.limit)
		if (err == nil) != c.ok || c.ok && string(b) != c.body {
			t.Errorf("%q within %d: %q, %v", c.body, c.limit, b, err)
		}
	}
}

func TestHeaderIsCapped(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 64<<10))
	})
	if _, err := get(t, guard(t, Options{MaxHeaderBytes: 4 << 10}).Client(), s.URL); err == nil {
		t.Error("a header of 64 KiB was read")
	}
}

func TestSlowServers(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}
		<-hold
	})
	defer close(hold)
	if _, err := get(t, guard(t, Options{HeaderTimeout: 30 * time.Millisecond}).Client(), s.URL); Describe(err) != "the call timed out" {
		t.Error(err)
	}
	resp, err := get(t, guard(t, Options{TotalTimeout: 30 * time.Millisecond}).Client(), s.URL+"/body")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.ReadAll(resp.Body); Describe(err) != "the call timed out" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/body", nil)
	resp, err = guard(t, Options{}).Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	if _, err = io.ReadAll(resp.Body); Describe(err) != "the call was cancelled" {
		t.Error(err)
	}
}

func TestSilentTLSServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := guard(t, Options{TLSTimeout: 30 * time.Millisecond}).Client()
	if _, err := get(t, c, "https://"+l.Addr().String()); Describe(err) != "the call timed out" {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	s.Config.ErrorLog = nil
	defer s.Close()
	if _, err := get(t, guard(t, Options{}).Client(), s.URL); Describe(err) != "the server's certificate was not accepted" {
		t.Error(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	resp, err := get(t, guard(t, Options{TLS: &tls.Config{RootCAs: pool}}).Client(), s.URL)
	if err != nil || resp.TLS == nil {
		t.Fatal(err)
	}
}

func TestUpgradeAnswerIsRefused(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		_ = conn.Close()
	})
	_, err := get(t, guard(t, Options{}).Client(), s.URL)
	if reason, _ := DeniedReason(err); reason != Policy {
		t.Error(err)
	}
}

func TestProxy(t *testing.T) {
	var asked string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { asked = r.URL.String() })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	hit := false
	s := serve(t, func(http.ResponseWriter, *http.Request) { hit = true })
	if _, err := get(t, guard(t, Options{}).Client(), s.URL); err != nil || !hit || asked != "" {
		t.Errorf("the environment was heeded: %v %q", err, asked)
	}
	u, _ := url.Parse(proxy.URL)
	g := guard(t, Options{Proxy: http.ProxyURL(u)})
	if _, err := get(t, g.Client(), "http://service.example/x"); err != nil || asked != "http://service.example/x" {
		t.Errorf("%v %q", err, asked)
	}
	if _, err := get(t, g.Client(), "http://169.254.169.254/"); err == nil {
		t.Error("a closed literal address went to the proxy")
	}
	// The proxy itself is an address like any other.
	closed := guard(t, Options{Proxy: http.ProxyURL(u), AllowPrefixes: []netip.Prefix{}})
	if _, err := get(t, closed.Client(), "http://service.example/"); err == nil {
		t.Error("a proxy on loopback was used")
	}
}

func TestDescribeNeverQuotesTheURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = get(t, guard(t, Options{}).Client(), "http://"+addr+"/?token=s3cret")
	if got := Describe(err); got != "the connection was refused" {
		t.Error(got)
	}
	for _, e := range []error{
		errors.New("s3cret"), &Denied{Reason: Blocked, Detail: "s3cret"}, &TooLarge{5},
		&net.DNSError{Name: "s3cret"}, tls.RecordHeaderError{Msg: "s3cret"}, io.ErrUnexpectedEOF,
		&url.Error{URL: "s3cret", Err: io.EOF},
	} {
		if s := Describe(e); s == "" || strings.Contains(s, "s3cret") {
			t.Errorf("%T: %q", e, s)
		}
	}
}
