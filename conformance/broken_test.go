package conformance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/conformance"
)

// mutation breaks the good host in one way, and names the check that must see it.
type mutation struct {
	name   string
	check  string
	damage func(http.Handler) http.Handler
}

// captured is an answer of the good host on its way through.
type captured struct {
	status int
	header http.Header
	body   []byte
}

// when selects requests by method and path; an empty method is any.
func when(method, pattern string) func(*http.Request) bool {
	re := regexp.MustCompile(pattern)
	return func(r *http.Request) bool {
		return (method == "" || r.Method == method) && re.MatchString(r.URL.EscapedPath())
	}
}

const (
	aRun    = `^/runs/[^/:]+$`
	aStream = `^/runs/[^/]+/events$`
	aPoll   = `^/runs/[^/]+/events/poll$`
	aCancel = `^/runs/[^/]+/cancel$`
	anAsk   = `^/runs/[^/]+/interrupts/`
	create  = `^/runs$`
	bulk    = `^/runs:bulk-cancel$`
	wellKn  = `^/\.well-known/openwop$`
	all     = `^/`
)

// answers changes the answers to selected requests.
func answers(sel func(*http.Request) bool, change func(*http.Request, *captured)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !sel(r) {
				next.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			c := &captured{rec.Code, rec.Header(), rec.Body.Bytes()}
			change(r, c)
			for k, v := range c.header {
				w.Header()[k] = v
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(c.status)
			_, _ = w.Write(c.body)
		})
	}
}

// requests changes selected requests before the host sees them.
func requests(sel func(*http.Request) bool, change func(*http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sel(r) {
				change(r)
			}
			next.ServeHTTP(w, r)
		})
	}
}

// instead answers selected requests itself.
func instead(sel func(*http.Request) bool, status int, body string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !sel(r) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("OpenWOP-Version", "2.0")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
}

func both(a, b func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler { return a(b(h)) }
}

// object edits a JSON body, if it is an object; nil leaves it as it is.
func object(edit func(map[string]any)) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) {
		m := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(c.body))
		d.UseNumber()
		if d.Decode(&m) != nil {
			return
		}
		edit(m)
		c.body, _ = json.Marshal(m)
	}
}

func set(key string, value any) func(*http.Request, *captured) {
	return object(func(m map[string]any) { m[key] = value })
}

func drop(key string) func(*http.Request, *captured) {
	return object(func(m map[string]any) { delete(m, key) })
}

// events edits the events of a poll.
func events(edit func([]any) []any) func(*http.Request, *captured) {
	return object(func(m map[string]any) {
		if list, ok := m["events"].([]any); ok {
			m["events"] = edit(list)
		}
	})
}

// ofType edits the events of one type.
func ofType(typ string, edit func(e map[string]any)) func(*http.Request, *captured) {
	return events(func(list []any) []any {
		for _, e := range list {
			if m := e.(map[string]any); m["type"] == typ {
				edit(m)
			}
		}
		return list
	})
}

// frames edits the frames of a finished stream, each with its closing blank line.
func frames(edit func([]string) []string) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) {
		if c.status != 200 {
			return
		}
		var head, list []string
		for _, f := range strings.SplitAfter(string(c.body), "\n\n") {
			switch {
			case f == "":
			case strings.HasPrefix(f, ":"):
				head = append(head, f)
			default:
				list = append(list, f)
			}
		}
		c.body = []byte(strings.Join(append(head, edit(list)...), ""))
	}
}

func status(from, to int) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) {
		if c.status == from {
			c.status = to
		}
	}
}

// on applies a change to answers of one status only.
func on(code int, change func(*http.Request, *captured)) func(*http.Request, *captured) {
	return func(r *http.Request, c *captured) {
		if c.status == code {
			change(r, c)
		}
	}
}

func header(name, value string) func(*http.Request, *captured) {
	return func(_ *http.Request, c *captured) {
		if value == "" {
			c.header.Del(name)
		} else {
			c.header.Set(name, value)
		}
	}
}

// finished selects streams that end by themselves at once: those of the runs
// every check shares. A stream of a run that goes on must not be held back.
func finished(r *http.Request) bool { return when("GET", aStream)(r) }

func query(r *http.Request, key, value string) {
	q := r.URL.Query()
	if value == "" {
		q.Del(key)
	} else {
		q.Set(key, value)
	}
	r.URL.RawQuery = q.Encode()
}

// claims lets discovery advertise a family, while nothing of it is there.
func claims(family string, record map[string]any, paths string) func(http.Handler) http.Handler {
	r := map[string]any{"status": "stable", "since": "2.0", "witness": "witnessable-gated"}
	for k, v := range record {
		r[k] = v
	}
	deaf := requests(when("", all), func(r *http.Request) { r.Header.Del("Idempotency-Key") })
	gone := instead(when("", paths), 404, `{"error":"not_found","message":"There is nothing here."}`)
	return both(answers(when("GET", wellKn), on(200, set(family, r))), both(deaf, gone))
}

func number(v any) int64 {
	n, _ := strconv.ParseInt(string(v.(json.Number)), 10, 64)
	return n
}

// A suite that cannot fail proves nothing: each broken host must be caught by
// the check that is there for it, which passes on the good one.
func TestBrokenHostsAreCaught(t *testing.T) {
	t.Parallel()
	host := good(t)
	url := serve(t, host)
	seen := map[string]bool{}
	for _, m := range mutations {
		if seen[m.name] {
			t.Errorf("two mutations are called %q", m.name)
		}
		seen[m.name] = true
		t.Run(m.check+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			one := func(c *conformance.Config) { c.Filter, c.Timeout = quoted(m.check), 5*time.Second }
			r := look(t, serve(t, m.damage(host)), one)
			got, ok := r.Result(m.check)
			if !ok || got.Status != conformance.Fail {
				t.Fatalf("not caught: %s %s %v", got.Status, got.Reason, got.Evidence)
			}
			if strings.HasPrefix(m.name, "claims ") {
				return // on the good host the check does not apply
			}
			sound := look(t, url, one)
			if x, _ := sound.Result(m.check); x.Status != conformance.Pass {
				t.Errorf("on the good host: %s %s", x.Status, x.Reason)
			}
		})
	}
}
