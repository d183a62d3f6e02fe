package webhook

import (
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// Seam is the way out by which events are delivered.
var Seam = node.Seam{
	Name: "fermata.webhooks", Kind: node.SeamWebhooks, BranchReFires: true,
	GuardedBy: "webhook.Outbox: of a run in replay mode, and of what a fork has inherited, nothing is queued",
}

// Outbox says what leaves the host because of a step of a run (engine.Outbox).
type Outbox struct{ hint chan struct{} }

// NewOutbox makes an outbox. A Worker that is given it hears of what it sends.
func NewOutbox() *Outbox { return &Outbox{hint: make(chan struct{}, 1)} }

// Fill adds to a step what goes out because of its events. s is the run after it.
func (o *Outbox) Fill(s *run.State, a *store.Append) {
	events := news(a)
	if len(events) == 0 {
		return
	}
	a.Matcher = &matcher{events: events, tags: s.Tags}
	if s.CallbackURL == "" {
		return
	}
	for i := range events {
		if e := &events[i]; CalledBack(e.Type) {
			a.Queued = append(a.Queued, store.Queued{
				Target: callbackTarget(s.ID.Opaque, s.CallbackMajor), URL: s.CallbackURL, First: e.Seq, Last: e.Seq, At: e.Time,
			})
		}
	}
}

// Sent hears that a step is durable: what it has queued can be delivered.
func (o *Outbox) Sent(a *store.Append) {
	if queuedSomething(a) {
		o.wake()
	}
}

func queuedSomething(a *store.Append) bool {
	if m, ok := a.Matcher.(*matcher); ok && m.hit || len(a.Queued) > 0 {
		return true
	}
	return slices.ContainsFunc(a.Also, queuedSomething)
}

// wake tells the worker that something may be due.
func (o *Outbox) wake() {
	select {
	case o.hint <- struct{}{}:
	default:
	}
}

// matcher decides which subscriptions want the events of one step.
type matcher struct {
	events []event.Event
	tags   []string
	hit    bool
}

// Match implements store.Matcher.
func (m *matcher) Match(subs []store.Subscription) []store.Queued {
	m.hit = false
	var out []store.Queued
	for i := range subs {
		s := &subs[i]
		if !overlaps(s.Tags, m.tags) {
			continue
		}
		q := store.Queued{Target: s.ID, First: -1}
		for k := range m.events {
			if e := &m.events[k]; wants(s, e.Type) {
				if q.First < 0 {
					q.First = e.Seq
				}
				q.Last, q.At = e.Seq, e.Time
			}
		}
		if q.First >= 0 {
			out = append(out, q)
		}
	}
	m.hit = len(out) > 0
	return out
}

// wants reports whether a subscription has asked for a type.
func wants(s *store.Subscription, t event.Type) bool { return slices.Contains(s.Events, string(t)) }

// overlaps reports whether a run with these tags is one of those wanted.
func overlaps(wanted, tags []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(t string) bool { return slices.Contains(tags, t) })
}

// CalledBack reports whether a run's callback URL is told of a type.
func CalledBack(t event.Type) bool { return t == event.InterruptRequested }

// Targets of callback URLs, by the major of whoever gave the URL. No subscription has
// such an id, which holds no colon.
const (
	callbacks      = "callback:"
	olderCallbacks = "callback1:"
)

// callbackTarget names the target of a run's callback URL.
func callbackTarget(run string, major int) string {
	if major == 1 {
		return olderCallbacks + run
	}
	return callbacks + run
}

// callbackMajor is the major of a target that callbackTarget has named.
func callbackMajor(target string) int {
	if strings.HasPrefix(target, olderCallbacks) {
		return 1
	}
	return 0
}

// news is the part of a step that is news to the outside: not what a replay says
// again, nor what any fork has inherited; a branch's own events are (spec v2
// webhooks.md §Replay). That is read from the run, never from an event.
func news(a *store.Append) []event.Event {
	return slices.DeleteFunc(slices.Clone(a.Events), func(e event.Event) bool { return a.Row.History(e.Seq) })
}
