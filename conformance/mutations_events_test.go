package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nobody is the context of a request no client waits for.
var nobody = context.Background()

func readAll(r *http.Request) []byte {
	b, _ := io.ReadAll(r.Body)
	return b
}

func putBody(r *http.Request, b []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Set("Content-Length", fmt.Sprint(len(b)))
}

var logMutations = []mutation{
	{"event says too much", "log.envelope", answers(when("GET", aPoll), ofType("node.started", func(e map[string]any) { e["host"] = "x" }))},
	{"an event is dropped", "log.sequence", answers(when("GET", aPoll), events(func(l []any) []any {
		return slices.DeleteFunc(l, func(e any) bool { return sequenceOf(e) == 2 })
	}))},
	{"an event comes twice", "log.sequence", answers(when("GET", aPoll), events(func(l []any) []any {
		if len(l) > 1 {
			l = slices.Insert(l, 1, l[1])
		}
		return l
	}))},
	{"log begins at 1", "poll.from-first", answers(when("GET", aPoll), events(func(l []any) []any { return renumber(l, 1) }))},
	{"type nobody registered", "log.types", answers(when("GET", aPoll), ofType("node.started", func(e map[string]any) { e["type"] = "node.begun.now.again" }))},
	{"vendor nobody knows", "log.types", answers(when("GET", aPoll), ofType("node.started", func(e map[string]any) { e["type"] = "acme.began" }))},
	{"payload says too much", "log.payloads", answers(when("GET", aPoll), ofType("node.completed", func(e map[string]any) { e["payload"].(map[string]any)["surprise"] = 1 }))},
	{"event ids repeat", "log.ids-unique", answers(when("GET", aPoll), ofType("node.started", func(e map[string]any) { e["eventId"] = "0123456789abcdef" }))},
	{"no outputs", "log.outputs", answers(when("GET", aPoll), ofType("run.completed", func(e map[string]any) { delete(e["payload"].(map[string]any), "outputs") }))},
	{"something follows the end", "log.one-end", answers(when("GET", aPoll), events(func(l []any) []any {
		if len(l) > 2 {
			slices.Reverse(l[len(l)-2:])
		}
		return l
	}))},
	{"history changes", "log.fixed", answers(when("GET", aPoll), ofType("run.started", func(e map[string]any) { e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano) }))},
	{"node ends before it starts", "log.node-order", answers(when("GET", aPoll), ofType("node.started", func(e map[string]any) { e["type"] = "log.appended" }))},
	{"failure told differently", "log.failure", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		if e, ok := m["error"].(map[string]any); ok {
			e["message"] = "something else"
		}
	})))},
	{"numbers are rounded", "log.fidelity", answers(when("GET", aPoll), func(_ *http.Request, c *captured) {
		c.body = bytes.ReplaceAll(c.body, []byte("9007199254740993"), []byte("9007199254740992"))
	})},
	{"poll says too much", "poll.shape", answers(when("GET", aPoll), set("next", 3))},
	{"cursor counts its own event", "poll.every-position", requests(when("GET", aPoll), func(r *http.Request) {
		if q := r.URL.Query().Get("afterSequence"); q != "" && q != "0" {
			var n int64
			fmt.Sscan(q, &n)
			query(r, "afterSequence", fmt.Sprint(n-1))
		}
	})},
	{"cursor past the end refused", "poll.past-end", instead(func(r *http.Request) bool {
		return when("GET", aPoll)(r) && r.URL.Query().Get("afterSequence") == "100000"
	}, 400, `{"error":"validation_error","message":"no"}`)},
	{"no events is null", "poll.past-end", answers(when("GET", aPoll), object(func(m map[string]any) {
		if l, ok := m["events"].([]any); ok && len(l) == 0 {
			m["events"] = nil
		}
	}))},
	{"lastSequence of the page", "poll.every-position", answers(when("GET", aPoll), object(func(m map[string]any) {
		if l, ok := m["events"].([]any); ok && len(l) == 0 {
			m["lastSequence"] = -1
		}
	}))},
	{"terminal while it waits", "poll.terminal", answers(when("GET", aPoll), set("isTerminal", true))},
	{"terminal before the last event", "poll.never-early", answers(when("GET", aPoll), events(func(l []any) []any {
		return slices.DeleteFunc(l, func(e any) bool { return e.(map[string]any)["type"] == "run.completed" })
	}))},
	{"poll does not wait", "poll.waits", instead(func(r *http.Request) bool {
		return when("GET", aPoll)(r) && r.URL.Query().Get("timeout") == "20"
	}, 200, `{"runId":"default/0123456789abcdef","events":[],"lastSequence":3,"status":"waiting-approval","isTerminal":false}`)},
	{"poll sees nothing happen", "poll.waits", answers(func(r *http.Request) bool {
		return when("GET", aPoll)(r) && r.URL.Query().Get("timeout") == "20"
	}, set("events", []any{}))},
	{"any timeout will do", "poll.parameters", requests(when("GET", aPoll), func(r *http.Request) { query(r, "timeout", "") })},
}

// upToLast leaves the last frame out.
func upToLast(l []string) []string { return l[:max(len(l)-1, 0)] }

var idLine = regexp.MustCompile(`(?m)^id: .*$`)

var streamMutations = []mutation{
	{"stream ends early", "stream.complete", answers(finished, frames(upToLast))},
	{"frame is lost", "stream.complete", answers(finished, frames(func(l []string) []string { return slices.Delete(l, 1, 2) }))},
	{"frame comes twice", "stream.complete", answers(finished, frames(func(l []string) []string { return append(l, l[len(l)-1]) }))},
	{"frames out of order", "stream.complete", answers(finished, frames(func(l []string) []string { l[0], l[1] = l[1], l[0]; return l }))},
	{"stream stays open", "stream.complete", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			if finished(r) {
				select {
				case <-r.Context().Done():
				case <-time.After(20 * time.Second):
				}
			}
		})
	}},
	{"stream is text", "stream.content-type", answers(finished, header("Content-Type", "text/plain"))},
	{"ids are not sequences", "stream.frames", answers(finished, frames(func(l []string) []string {
		for i := range l {
			l[i] = idLine.ReplaceAllString(l[i], fmt.Sprint("id: ", i+1))
		}
		return l
	}))},
	{"frames have no name", "stream.frames", answers(finished, frames(func(l []string) []string {
		for i := range l {
			l[i] = regexp.MustCompile(`(?m)^event: .*\n`).ReplaceAllString(l[i], "")
		}
		return l
	}))},
	{"stream tells it differently", "stream.same-bytes", answers(finished, func(_ *http.Request, c *captured) {
		c.body = bytes.ReplaceAll(c.body, []byte(`"transport":"rest"`), []byte(`"transport":"mcp"`))
	})},
	{"default is debug", "stream.default", requests(finished, func(r *http.Request) {
		if r.URL.Query().Get("streamMode") == "" {
			query(r, "streamMode", "debug")
		}
	})},
	{"updates hides a wait", "stream.updates", answers(finished, frames(func(l []string) []string {
		return slices.DeleteFunc(l, func(f string) bool { return strings.Contains(f, "event: node.suspended") })
	}))},
	{"updates shows everything", "stream.default", requests(finished, func(r *http.Request) {
		if r.URL.Query().Get("streamMode") == "updates" {
			query(r, "streamMode", "debug")
		}
	})},
	{"last snapshot is missing", "stream.values", answers(finished, frames(upToLast))},
	{"mixed mode is one of the two", "stream.mixed", requests(finished, func(r *http.Request) {
		if r.URL.Query().Get("streamMode") == "updates,debug" {
			query(r, "streamMode", "updates")
		}
	})},
	{"any mode will do", "stream.unsupported-mode", requests(finished, func(r *http.Request) { query(r, "streamMode", "updates") })},
	{"modes are not listed", "stream.unsupported-mode", answers(finished, on(400, drop("details")))},
	{"mode looked at after what is accepted", "stream.validated-first", instead(func(r *http.Request) bool {
		return finished(r) && r.Header.Get("Accept") == "image/png"
	}, 415, `{"error":"unsupported_media_type","message":"no"}`)},
	{"live stream ends at a wait", "stream.live", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !finished(r) {
				next.ServeHTTP(w, r)
				return
			}
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			next.ServeHTTP(&watcher{ResponseWriter: w, at: []byte("event: interrupt.requested"), do: cancel}, r.WithContext(ctx))
		})
	}},
	{"Last-Event-ID is ignored", "resume.every-position", requests(finished, func(r *http.Request) { r.Header.Del("Last-Event-ID") })},
	{"resumption point comes again", "resume.every-position", requests(finished, func(r *http.Request) {
		var n int64
		if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &n); err == nil && n > 0 {
			r.Header.Set("Last-Event-ID", fmt.Sprint(n-1))
		}
	})},
	{"a resume loses an event", "resume.every-position", requests(finished, func(r *http.Request) {
		var n int64
		if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &n); err == nil && n == 2 {
			r.Header.Set("Last-Event-ID", "3")
		}
	})},
	{"resume at the end begins anew", "resume.at-end", requests(finished, func(r *http.Request) { r.Header.Del("Last-Event-ID") })},
	{"no snapshot first", "resume.values", answers(finished, frames(func(l []string) []string {
		for i := range l {
			l[i] = strings.Replace(l[i], "event: state.snapshot", "event: run.started", 1)
		}
		return l
	}))},
	{"any Last-Event-ID will do", "resume.malformed", requests(finished, func(r *http.Request) { r.Header.Del("Last-Event-ID") })},
	{"cursor looked at before the caller", "resume.after-authorization", instead(func(r *http.Request) bool {
		return finished(r) && r.Header.Get("Last-Event-ID") == "abc"
	}, 400, `{"error":"validation_error","message":"no"}`)},
	{"batch loses an event", "batch.frames", answers(finished, func(_ *http.Request, c *captured) { c.body = dropFirstOfBatch(c.body) })},
	{"batch waits for the buffer", "batch.suspended", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if finished(r) {
				w = &watcher{ResponseWriter: w, at: []byte("event: batch"), do: func() { time.Sleep(5 * time.Second) }}
			}
			next.ServeHTTP(w, r)
		})
	}},
}

// dropFirstOfBatch takes the first event out of the first batch.
func dropFirstOfBatch(b []byte) []byte {
	i := bytes.Index(b, []byte("data: [{"))
	j := bytes.Index(b, []byte(`},{"`))
	if i < 0 || j < i {
		return b
	}
	return append(append(bytes.Clone(b[:i+len("data: [")]), '{'), b[j+3:]...)
}

// watcher does something before a stream writes something.
type watcher struct {
	http.ResponseWriter
	at []byte
	do func()
}

func (w *watcher) Write(b []byte) (int, error) {
	if bytes.Contains(b, w.at) {
		w.do()
	}
	return w.ResponseWriter.Write(b)
}

func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const resolved = `{"runId":"default/0123456789abcdef","nodeId":"gate","status":"running"}`

func late(_ *http.Request, c *captured) { c.status, c.body = 200, []byte(resolved) }

var waitMutations = []mutation{
	{"request says too much", "interrupt.requested", answers(when("GET", aPoll), ofType("interrupt.requested", func(e map[string]any) { e["payload"].(map[string]any)["x"] = 1 }))},
	{"wait of another kind", "interrupt.status", answers(when("GET", aRun), on(200, object(func(m map[string]any) {
		if m["status"] == "waiting-external" {
			m["status"] = "waiting-input"
		}
	})))},
	{"answer is not in the log", "interrupt.resolve", answers(when("GET", aPoll), events(func(l []any) []any {
		return slices.DeleteFunc(l, func(e any) bool { return e.(map[string]any)["type"] == "interrupt.resolved" })
	}))},
	{"body may hold anything", "interrupt.closed", body(anAsk, func(m map[string]any) { delete(m, "by") })},
	{"second answer is taken", "interrupt.once", answers(when("POST", anAsk), on(409, late))},
	{"all answers at once are taken", "interrupt.concurrent", answers(when("POST", anAsk), on(409, late))},
	{"answer to a run that is over", "interrupt.run-over", answers(when("POST", anAsk), on(409, late))},
	{"expired instead of resolved", "interrupt.run-over", answers(when("POST", anAsk), on(409, func(r *http.Request, c *captured) {
		c.status = 410
		set("error", "interrupt_expired")(r, c)
	}))},
	{"unknown node is resolved", "interrupt.nobody-waits", answers(when("POST", anAsk), on(404, late))},
	{"schema is ignored", "interrupt.schema", answers(when("POST", anAsk), on(400, late))},
	{"two waits share an id", "interrupt.parallel", answers(when("GET", aPoll), ofType("node.suspended", func(e map[string]any) {
		e["payload"].(map[string]any)["interruptId"] = "default/0123456789abcdef"
	}))},
	{"timeout never fires", "interrupt.timeout", answers(when("GET", aRun), on(200, set("status", "waiting-approval")))},
	{"any action will do", "approval.action-offered", answers(when("POST", anAsk), on(400, late))},
	{"refine without feedback", "approval.required-fields", answers(when("POST", anAsk), on(400, late))},
	{"asking opens the gate", "approval.ask-stays", body(anAsk, func(m map[string]any) {
		m["resumeValue"] = map[string]any{"action": "accept"}
	})},
}

const claimed = `^/(webhooks|interrupts|host/effect-seams)|^/runs/[^/]+(:fork|/effects)$`

// claimMutations are hosts that advertise what they do not have.
var claimMutations = []mutation{
	{"claims idempotency: keys", "idempotency.key-refused", claims("idempotency", nil, claimed)},
	{"claims idempotency: replay", "idempotency.replay", claims("idempotency", nil, claimed)},
	{"claims idempotency: mismatch", "idempotency.mismatch", claims("idempotency", nil, claimed)},
	{"claims idempotency: concurrent", "idempotency.concurrent", claims("idempotency", nil, claimed)},
	{"claims idempotency: refusals", "idempotency.final-refusal", claims("idempotency", nil, claimed)},
	{"claims idempotency: effects", "effects.ledger", claims("idempotency", nil, claimed)},
	{"claims replay: manifest", "replay.manifest", claims("replay", map[string]any{"modes": []string{"replay"}, "effectSeamsManifest": "/host/effect-seams"}, claimed)},
	{"claims replay: facet", "replay.facet", claims("replay", map[string]any{"modes": []string{"replay"}, "effectSeamsManifest": "/elsewhere"}, claimed)},
	{"claims replay: fork", "fork.replay", claims("replay", map[string]any{"modes": []string{"replay"}}, claimed)},
	{"claims replay: refusals", "fork.refusals", claims("replay", map[string]any{"modes": []string{"replay"}}, claimed)},
	{"claims webhooks: scheme", "webhooks.facet", claims("webhooks", map[string]any{"signatureAlgorithms": []string{"v2"}}, claimed)},
	{"claims webhooks: egress", "webhooks.url-refused", claims("webhooks", map[string]any{"signatureAlgorithms": []string{"v1"}}, claimed)},
	{"claims webhooks: delivery", "webhooks.signed", claims("webhooks", map[string]any{"signatureAlgorithms": []string{"v1"}}, claimed)},
	{"claims interrupt: facet", "approval.facet", claims("interrupt", nil, claimed)},
	{"claims interrupt: approvers", "approval.approvers", both(claims("interrupt", map[string]any{"tokenAlgs": []string{"hs256"}}, claimed),
		answers(when("POST", anAsk), on(403, late)))},
}
