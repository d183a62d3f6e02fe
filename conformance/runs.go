package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// foreignRun is a well-formed id in a tenant that is surely not the caller's.
const foreignRun = "conformance-foreign-tenant/conformance0foreign0run"

// segment writes a tenant-bound id as one path segment (spec v2 identity.md §5).
func segment(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02X", c)
		}
	}
	return b.String()
}

func at(id string) string { return "/runs/" + segment(id) }

// start creates a run and wants to succeed: for checks that are about what
// comes afterwards, a refused create is a precondition that is not there.
func (p *probe) start(r role, extra ...object) string {
	return p.startOf(p.workflow(r), extra...)
}

func (p *probe) startOf(workflow string, extra ...object) string {
	a := p.create(workflow, extra...)
	if a.status != 201 || a.str("runId") == "" {
		p.blocked("a run of %s could not be created: %s", workflow, a.brief())
	}
	return a.str("runId")
}

// create sends createRun and takes care that the run ends with the check.
func (p *probe) create(workflow string, extra ...object) answer {
	return p.createWith(nil, workflow, extra...)
}

func (p *probe) createWith(header []string, workflow string, extra ...object) answer {
	body := object{"workflowId": workflow}
	for _, x := range extra {
		for k, v := range x {
			body[k] = v
		}
	}
	if _, ok := body["inputs"]; !ok {
		body["inputs"] = inputsOf(workflow)
	}
	if len(body["inputs"].(object)) == 0 {
		delete(body, "inputs")
	}
	return p.owned(p.post("/runs", body, header...))
}

// owned notes a created run for the cleanup.
func (p *probe) owned(a answer) answer {
	if id := a.str("runId"); a.status == 201 && id != "" {
		p.mu.Lock()
		p.runs = append(p.runs, id)
		p.mu.Unlock()
	}
	return a
}

// inputsOf are the inputs a workflow cannot do without.
func inputsOf(workflow string) object {
	switch {
	case workflow == standard[delay] || strings.HasPrefix(workflow, "conformance-own-delay-"):
		return object{"delayMs": 20_000}
	case workflow == standard[echo] || strings.HasPrefix(workflow, "conformance-own-echo-"):
		return object{"payload": object{}}
	}
	return object{}
}

func terminal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

func terminalType(t string) bool {
	return t == "run.completed" || t == "run.failed" || t == "run.cancelled"
}

func (p *probe) snapshot(id string) answer { return p.ok(p.get(at(id)), 200, "") }

// patience is how long a run is given to get where it should. It is a guard
// against hanging, and no measure of speed.
const patience = 12 * time.Second

// reach waits until a run is in one of the statuses; the last snapshot, and
// whether it got there.
func (p *probe) reach(id string, statuses ...string) (answer, bool) {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		a := p.snapshot(id)
		if slices.Contains(statuses, a.str("status")) {
			return a, true
		}
		if terminal(a.str("status")) || time.Now().After(deadline) || !p.pause(wait) {
			return a, false
		}
	}
}

// await is for preconditions: a run that does not get there blocks the check.
func (p *probe) await(id string, statuses ...string) answer {
	a, ok := p.reach(id, statuses...)
	if !ok {
		p.blocked("the run did not become %s: it is %s", strings.Join(statuses, " or "), a.str("status"))
	}
	return a
}

// becomes is for what the check is about.
func (p *probe) becomes(id string, statuses ...string) answer {
	a, ok := p.reach(id, statuses...)
	p.want(ok, "the run did not become %s: it is %s", strings.Join(statuses, " or "), a.str("status"))
	return a
}

func (p *probe) ended(id string) answer { return p.await(id, "completed", "failed", "cancelled") }

// page is the answer of a poll.
type page struct {
	RunID        string            `json:"runId"`
	Events       []json.RawMessage `json:"events"`
	LastSequence int64             `json:"lastSequence"`
	Status       string            `json:"status"`
	IsTerminal   bool              `json:"isTerminal"`
}

func (p *probe) poll(id, query string) (page, answer) {
	a := p.ok(p.get(at(id)+"/events/poll"+query), 200, "")
	var g page
	if err := json.Unmarshal(a.body, &g); err != nil {
		p.fail("%s: not a poll response: %v", a.line(), err)
	}
	return g, a
}

// log reads all events there are.
func (p *probe) log(id string) []event {
	if p.speaks() == 1 {
		return p.log1(id)
	}
	var out []event
	query := "?timeout=1"
	for range 1000 {
		g, _ := p.poll(id, query)
		for _, doc := range g.Events {
			out = append(out, p.event(doc))
		}
		if len(out) == 0 || out[len(out)-1].Sequence >= g.LastSequence || len(g.Events) == 0 {
			return out
		}
		query = fmt.Sprintf("?timeout=1&afterSequence=%d", out[len(out)-1].Sequence)
	}
	p.fail("the log of %s does not end", id)
	return nil
}

func types(events []event) []string {
	out := make([]string, len(events))
	for i := range events {
		out[i] = events[i].Type
	}
	return out
}

func find(events []event, typ string) (event, bool) {
	i := slices.IndexFunc(events, func(e event) bool { return e.Type == typ })
	if i < 0 {
		return event{}, false
	}
	return events[i], true
}

func count(events []event, typ string) int {
	n := 0
	for i := range events {
		if events[i].Type == typ {
			n++
		}
	}
	return n
}

func (p *probe) resolve(id, node string, value any, header ...string) answer {
	return p.post(at(id)+"/interrupts/"+segment(node), object{"resumeValue": value}, header...)
}

var accept = object{"action": "accept"}

// waiting starts a run that suspends, and returns it with the node that waits.
func (p *probe) waiting(r role, status string) (id, node string) {
	id = p.start(r)
	a := p.await(id, status)
	if node = a.str("currentNodeId"); node == "" {
		p.blocked("the snapshot of a suspended run names no currentNodeId")
	}
	return id, node
}

// shared is a run that has ended and is read by many checks.
type shared struct {
	once sync.Once
	id   string
}

// over returns a run that has ended: completed, approved, failed or cancelled.
// Nothing can change it any more, so the checks share it.
func (p *probe) over(how string) string {
	p.s.mu.Lock()
	sh := p.s.finished[how]
	if sh == nil {
		sh = &shared{}
		p.s.finished[how] = sh
	}
	p.s.mu.Unlock()
	sh.once.Do(func() { sh.id = p.finish(how) })
	if sh.id == "" {
		p.blocked("a run that is %s could not be had: the check that tried first says why", how)
	}
	return sh.id
}

func (p *probe) finish(how string) string {
	switch how {
	case "completed":
		id := p.start(chain)
		p.await(id, "completed")
		return id
	case "approved":
		id, node := p.waiting(approval, "waiting-approval")
		if a := p.resolve(id, node, accept); a.status != 200 {
			p.blocked("the approval could not be given: %s", a.brief())
		}
		p.await(id, "completed")
		return id
	case "failed":
		id := p.start(failing)
		p.await(id, "failed")
		return id
	case "cancelled":
		id := p.start(delay)
		p.await(id, "running")
		if a := p.post(at(id)+"/cancel", object{}); a.status != 200 {
			p.blocked("the run could not be cancelled: %s", a.brief())
		}
		p.await(id, "cancelled")
		return id
	}
	return ""
}
