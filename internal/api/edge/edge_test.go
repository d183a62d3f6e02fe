package edge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

const app = "https://app.example.com"

func ask(t *testing.T, c Config, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	c.Methods = func(path string) []string {
		if path == "/runs" {
			return []string{"POST", "GET"}
		}
		return nil
	}
	w := httptest.NewRecorder()
	New(c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "OpenWOP-Version")
		w.WriteHeader(http.StatusTeapot)
	})).ServeHTTP(w, r)
	for _, name := range []string{"X-Content-Type-Options", "Referrer-Policy", "Content-Security-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"} {
		if len(w.Header()[name]) != 1 {
			t.Errorf("%s %s: %s is %q", r.Method, r.URL, name, w.Header()[name])
		}
	}
	if w.Header().Get("Server") != "" || w.Header().Get("X-Powered-By") != "" {
		t.Errorf("says what it is: %v", w.Header())
	}
	if w.Code >= 400 && w.Code != http.StatusTeapot {
		if err := schema.Validate("error-envelope", w.Body.Bytes()); err != nil {
			t.Errorf("%v: %s", err, w.Body)
		}
	}
	return w
}

func preflight(origin, path, method string) *http.Request {
	r := httptest.NewRequest("OPTIONS", path, nil)
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", method)
	r.Header.Set("Access-Control-Request-Headers", "authorization,idempotency-key")
	return r
}

// Nothing is granted to any origin but the listed ones, letter by letter, and never
// what a browser adds by itself.
func TestOrigins(t *testing.T) {
	open := Config{Origins: []string{app, "http://localhost:3000"}}
	for origin, want := range map[string]bool{
		app: true, "http://localhost:3000": true, "https://app.example.com.evil.test": false, "https://evilapp.example.com": false,
		"http://app.example.com": false, "https://app.example.com:8443": false, "https://APP.example.com": false, app + "/": false,
		"null": false, "": false, "*": false, app + ", https://evil.test": false, "https://sub.app.example.com": false,
	} {
		for _, r := range []*http.Request{httptest.NewRequest("GET", "/runs", nil), preflight(origin, "/runs", "POST"), preflight(origin, "/runs/../x", "GET")} {
			r.Header.Set("Origin", origin)
			h := ask(t, open, r).Header()
			got := h.Get("Access-Control-Allow-Origin")
			if want && got != origin || !want && got != "" {
				t.Errorf("%s %q: allowed %q", r.Method, origin, got)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%q: with credentials", origin)
			}
			if !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
				t.Errorf("%q: Vary is %q", origin, h.Values("Vary"))
			}
			if !want && (h.Get("Access-Control-Allow-Methods")+h.Get("Access-Control-Allow-Headers")+h.Get("Access-Control-Expose-Headers")) != "" {
				t.Errorf("%q: %v", origin, h)
			}
		}
		if h := ask(t, Config{}, preflight(origin, "/runs", "POST")).Header(); h.Get("Access-Control-Allow-Origin") != "" || len(h.Values("Vary")) > 0 {
			t.Errorf("%q is granted by a closed host: %v", origin, h)
		}
	}
	two := httptest.NewRequest("GET", "/runs", nil)
	two.Header["Origin"] = []string{app, "https://evil.test"}
	if got := ask(t, open, two).Header().Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("two origins: %q", got)
	}
}

func TestPreflight(t *testing.T) {
	c := Config{Origins: []string{app}}
	w := ask(t, c, preflight(app, "/runs", "POST"))
	h := w.Header()
	if w.Code != 204 || w.Body.Len() > 0 || h.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS, POST" || h.Get("Allow") != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("%d %v", w.Code, h)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "If-None-Match", "OpenWOP-Version", "OpenWOP-Dedup"} {
		if !strings.Contains(h.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("%s is not admitted", name)
		}
	}
	for _, name := range []string{"ETag", "Retry-After", "OpenWOP-Version", "OpenWOP-Idempotent-Replay"} {
		if !strings.Contains(h.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s is not exposed", name)
		}
	}
	// Without a preflight's question the answer is what the path takes, and no more.
	if h := ask(t, c, httptest.NewRequest("OPTIONS", "/runs", nil)).Header(); h.Get("Allow") == "" || h.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("%v", h)
	}
	if w := ask(t, c, preflight(app, "/nowhere", "GET")); w.Code != http.StatusTeapot {
		t.Errorf("a path that is no operation's: %d", w.Code)
	}
}

func TestHosts(t *testing.T) {
	loop := &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 7411}
	six := &net.TCPAddr{IP: net.ParseIP("::1"), Port: 7411}
	out := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 7411}
	for _, c := range []struct {
		local net.Addr
		host  string
		want  bool
	}{
		{loop, "127.0.0.1:7411", true}, {loop, "localhost:7411", true}, {loop, "LOCALHOST", true}, {loop, "localhost.:7411", true}, {loop, "[::1]:7411", true},
		{loop, "[::ffff:127.0.0.1]", true}, {loop, "app.localhost:1", true}, {loop, "", true}, {loop, "127.9.9.9", true},
		{loop, "evil.test", false}, {loop, "evil.test:7411", false}, {loop, "localhost.evil.test", false}, {loop, "127.0.0.1.evil.test", false},
		{loop, "0.0.0.0:7411", false}, {loop, "192.0.2.7", false}, {loop, "notlocalhost", false}, {loop, "127.0.0.1@evil.test", false}, {six, "evil.test", false},
		{loop, "fermata.example.com", true}, {loop, "Fermata.Example.com:443", true}, {loop, "x.fermata.example.com", false},
		{out, "evil.test", true}, {nil, "evil.test", true},
	} {
		r := httptest.NewRequest("GET", "/runs", nil)
		r.Host = c.host
		if c.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		}
		w := ask(t, Config{Hosts: []string{"fermata.example.com"}}, r)
		if got := w.Code == http.StatusTeapot; got != c.want {
			t.Errorf("%q on %v: %d %s", c.host, c.local, w.Code, w.Body)
		}
		if !c.want && (w.Code != 403 || !strings.Contains(w.Body.String(), `"forbidden"`) || c.host != "" && strings.Contains(w.Body.String(), c.host)) {
			t.Errorf("%q: %d %s", c.host, w.Code, w.Body)
		}
	}
}

func TestDotSegments(t *testing.T) {
	for path, want := range map[string]bool{
		"/runs": true, "/runs/a.b": true, "/.well-known/openwop": true, "/runs/t%2Fx": true, "/x/.hidden": true, "/x/...": true, "/": true,
		"/.": false, "/..": false, "/runs/..": false, "/runs/../keys": false, "/runs/%2e%2e/x": false, "/runs/%2E": false, "/runs/.%2e/x": false,
		"/runs/a%2F..%2Fb": false, "/runs/%2e/": false,
	} {
		w := ask(t, Config{}, httptest.NewRequest("GET", path, nil))
		if got := w.Code == http.StatusTeapot; got != want || !want && w.Code != 400 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestCheckSettings(t *testing.T) {
	for s, want := range map[string]bool{
		app: true, "http://localhost:3000": true, "https://[2001:db8::1]:8443": true,
		"*": false, "null": false, "": false, "app.example.com": false, app + "/": false, app + "/x": false, "https://APP.example.com": false,
		"https://app.example.com:443": false, "http://x:80": false, "ftp://x": false, "https://*.example.com": false, "https://u@x.test": false, "https://x?y": false,
	} {
		if err := CheckOrigin(s); (err == nil) != want {
			t.Errorf("origin %q: %v", s, err)
		}
	}
	for s, want := range map[string]bool{
		"fermata.example.com": true, "10.0.0.1": true, "::1": true, "": false, "Fermata": false, "x:80": false, "http://x": false, "*": false, "*.x": false, "x.": false,
	} {
		if err := CheckHost(s); (err == nil) != want {
			t.Errorf("host %q: %v", s, err)
		}
	}
}

// A request whose length could be read in two ways is the last of its connection.
func TestChunksEndTheConnection(t *testing.T) {
	r := httptest.NewRequest("POST", "/runs", strings.NewReader("{}"))
	r.TransferEncoding = []string{"chunked"}
	if got := ask(t, Config{}, r).Header().Get("Connection"); got != "close" {
		t.Errorf("Connection: %q", got)
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"localhost:1", "[::1]", "evil.test", "127.0.0.1", "a:b:c", "[", "]:", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !ownName(s) {
			return
		}
		name := bare(s)
		if name != "" && name != "localhost" && !strings.HasSuffix(name, ".localhost") && !net.ParseIP(name).IsLoopback() {
			t.Errorf("%q passes for the loopback", s)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e%2e/", "/a%2f.", "/..", "/.well-known", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		bad := checkPath(s) != nil
		plain := strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/").Replace(s)
		for part := range strings.SplitSeq(plain, "/") {
			if strings.HasPrefix(plain, "/") && (part == "." || part == "..") && !bad {
				t.Errorf("%q passes", s)
			}
		}
	})
}
