package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/store"
)

// recorder is a ResponseWriter that can be read while it is written.
type recorder struct {
	mu     sync.Mutex
	header http.Header
	text   strings.Builder
	stamps []time.Time // of flushes
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Flush()              {}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamps = append(r.stamps, time.Now())
	return r.text.Write(b)
}

// bubble runs a test of a host in fake time: what waits, waits no longer than it
// takes to say so. Requests go to the handler, not through a network.
func bubble(t *testing.T, test func(t *testing.T, h *fermata.Host, ask func(method, path, body string) answer, open func(path string) (*recorder, func()))) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := fermata.Open(context.Background(), fermata.Config{DataDir: dir, BootstrapKey: testKey})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		request := func(ctx context.Context, method, path, body string) *http.Request {
			r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+testKey)
			r.Header.Set("Content-Type", "application/json")
			return r
		}
		ask := func(method, path, body string) answer {
			t.Helper()
			w := httptest.NewRecorder()
			h.Handler().ServeHTTP(w, request(context.Background(), method, path, body))
			a := answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
			if err := json.Unmarshal(a.body, &a.json); err != nil {
				t.Fatalf("%v: %s", err, a.body)
			}
			return a
		}
		open := func(path string) (*recorder, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			w, done := &recorder{header: http.Header{}}, make(chan struct{})
			go func() {
				defer close(done)
				h.Handler().ServeHTTP(w, request(ctx, "GET", path, ""))
			}()
			return w, func() { cancel(); <-done }
		}
		test(t, h, ask, open)
		if err := h.Stop(context.Background()); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
}

// waiting is the id of a run that waits for an approval.
func waiting(t *testing.T, ask func(method, path, body string) answer) string {
	t.Helper()
	def, _ := json.Marshal(gate("gate"))
	ask("PUT", "/host/fermata/workflows/gate", string(def)).want(t, 201)
	id := ask("POST", "/runs", `{"workflowId":"gate"}`).want(t, 201).str("runId")
	for ask("GET", "/runs/"+seg(id), "").str("status") != "waiting-approval" {
		time.Sleep(time.Millisecond)
	}
	return id
}

// A stream is never silent for longer than proxies bear, whatever its mode.
func TestWireKeepAlive(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *fermata.Host, ask func(string, string, string) answer, open func(string) (*recorder, func())) {
		id := waiting(t, ask)
		for _, query := range []string{"", "?streamMode=values", "?streamMode=messages", "?bufferMs=5000", "?streamMode=debug&bufferMs=1"} {
			began := time.Now()
			w, stop := open("/runs/" + seg(id) + "/events" + query)
			time.Sleep(5 * time.Minute)
			stop()
			last := began
			for _, at := range append(w.stamps, time.Now()) {
				if gap := at.Sub(last); gap > 16*time.Second {
					t.Errorf("%q: silent for %v", query, gap)
				}
				last = at
			}
			if n := strings.Count(w.text.String(), "\n: "); n < 15 || strings.Contains(w.text.String(), "id: \n") {
				t.Errorf("%q: %d comments", query, n)
			}
		}
	})
}

// A poll without news lasts as long as it was asked to, 30 s by default, and is
// then a 200 that moves nothing.
func TestWirePollTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *fermata.Host, ask func(string, string, string) answer, open func(string) (*recorder, func())) {
		id := waiting(t, ask)
		end := ask("GET", "/runs/"+seg(id)+"/events/poll", "").want(t, 200).json["lastSequence"].(float64)
		for query, want := range map[string]time.Duration{
			"": 30 * time.Second, "&timeout=1": time.Second, "&timeout=60": time.Minute,
		} {
			for _, after := range []float64{end, end + 5} {
				began := time.Now()
				a := ask("GET", "/runs/"+seg(id)+"/events/poll?afterSequence="+jsonOf(t, after)+query, "").want(t, 200)
				if took := time.Since(began); took < want || took > want+time.Second {
					t.Errorf("%q: %v, want %v", query, took, want)
				}
				if len(a.json["events"].([]any)) != 0 || a.json["lastSequence"] != end || a.json["isTerminal"] != false {
					t.Errorf("%s", a.body)
				}
			}
		}
	})
}

// What is gathered for a batch waits for bufferMs and no longer.
func TestWireBatchIsSentInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *fermata.Host, ask func(string, string, string) answer, open func(string) (*recorder, func())) {
		id := waiting(t, ask)
		ask("POST", "/runs/"+seg(id)+":pause", "").want(t, 202)
		w, stop := open("/runs/" + seg(id) + "/events?bufferMs=2000")
		time.Sleep(10 * time.Second) // the log so far has been sent
		at := time.Now()
		ask("POST", "/runs/"+seg(id)+":resume", "").want(t, 202)
		time.Sleep(4 * time.Second)
		stop()
		sent := w.stamps[len(w.stamps)-1].Sub(at)
		if !strings.Contains(w.text.String(), "run.resumed") || sent < 1900*time.Millisecond || sent > 2500*time.Millisecond {
			t.Errorf("sent after %v: %s", sent, w.text.String())
		}
	})
}

// What is held back for a batch is sent when the host stops.
func TestWireStopSendsWhatIsHeld(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, h *fermata.Host, ask func(string, string, string) answer, open func(string) (*recorder, func())) {
		id := waiting(t, ask)
		w, stop := open("/runs/" + seg(id) + "/events?bufferMs=5000")
		time.Sleep(20 * time.Second)
		ask("POST", "/runs/"+seg(id)+":pause", "").want(t, 202)
		synctest.Wait()
		if strings.Contains(w.text.String(), "run.paused") {
			t.Fatal("nothing was held back")
		}
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		if !strings.Contains(w.text.String(), "run.paused") {
			t.Errorf("lost: %s", w.text.String())
		}
	})
}
