package conformance

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// receiver is an endpoint of the suite's own that the host calls.
type receiver struct {
	url    string
	verify string // how it answers a verification: empty as it should

	mu    sync.Mutex
	busy  int // calls being answered
	got   []delivery
	tasks []func(*probe)
}

// cutOff answers a call by breaking its connection.
const cutOff = 0

// delivery is one call of the receiver.
type delivery struct {
	header http.Header
	body   []byte
}

// receive starts a receiver that lives as long as the check: over https if the
// suite has an authority for it (Config.ReceiverCA), else over plain http. answer
// says how the nth call with the same body is answered; nil takes everything.
func (p *probe) receive(answer func(n int) int) *receiver {
	r := &receiver{}
	path := "/" + nonce() // so that nothing meant for another check counts here
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, path) {
			http.NotFound(w, req)
			return
		}
		body, _ := io.ReadAll(io.LimitReader(req.Body, 1<<20))
		if challenge := text(member(body, "challenge")); challenge != "" && req.Header.Get("OpenWOP-Event-Type") == "" {
			r.take(req.Header, body, nil)
			r.answerChallenge(w, body, path)
			return
		}
		status := r.take(req.Header, body, answer)
		if status == cutOff {
			panic(http.ErrAbortHandler)
		}
		if status >= 300 && status < 400 {
			w.Header().Set("Location", path+"/elsewhere")
		}
		w.WriteHeader(status)
	})
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // a caller that does not trust us is its own business
	if p.s.cfg.ReceiverListen != "" {
		l, err := net.Listen("tcp", p.s.cfg.ReceiverListen)
		if err != nil {
			p.blocked("the receiver cannot listen on %s: %v", p.s.cfg.ReceiverListen, err)
		}
		srv.Listener.Close()
		srv.Listener = l
	}
	if a := p.s.cfg.authority; a != nil {
		cert, err := a.leaf(hostOf(p.s.cfg.ReceiverURL))
		if err != nil {
			p.blocked("the receiver has no certificate: %v", err)
		}
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		srv.StartTLS()
	} else if p.s.cfg.ReceiverTLS != nil {
		srv.TLS = p.s.cfg.ReceiverTLS.Clone()
		srv.StartTLS()
	} else {
		srv.Start()
	}
	r.url = srv.URL + path
	if p.s.cfg.ReceiverURL != "" {
		r.url = strings.TrimRight(p.s.cfg.ReceiverURL, "/") + path
	}
	r.after(func(*probe) { srv.Close() })
	p.mu.Lock()
	p.receivers = append(p.receivers, r)
	p.mu.Unlock()
	return r
}

func (r *receiver) take(h http.Header, body []byte, answer func(int) int) int {
	r.mu.Lock()
	n := 1
	for _, d := range r.got {
		if bytes.Equal(d.body, body) {
			n++
		}
	}
	r.got = append(r.got, delivery{header: h.Clone(), body: body})
	r.busy++
	r.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		status = answer(n) // which may take its time
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	return status
}

// open is how many calls are being answered.
func (r *receiver) open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy
}

// answerChallenge answers a verification as the receiver is told to.
func (r *receiver) answerChallenge(w http.ResponseWriter, body []byte, path string) {
	w.Header().Set("Content-Type", "application/json")
	switch r.verify {
	case "silent":
		_, _ = io.WriteString(w, "{}")
	case "other":
		_, _ = io.WriteString(w, `{"challenge":"conformance"}`)
	case "redirect":
		w.Header().Set("Location", path+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "refuse":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(body)
	default:
		_, _ = w.Write(body)
	}
}

func (r *receiver) all() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got...)
}

// asked are the verifications among the calls.
func (r *receiver) asked() []delivery {
	return slices.DeleteFunc(r.all(), func(d delivery) bool { return member(d.body, "challenge") == nil })
}

// after registers something to do at the end; the last one comes first.
func (r *receiver) after(task func(*probe)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, task)
}

func (r *receiver) close(p *probe) {
	for i := len(r.tasks) - 1; i >= 0; i-- {
		r.tasks[i](p)
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func containsText(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }
