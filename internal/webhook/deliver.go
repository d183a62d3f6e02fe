package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
)

const (
	readEvents = 64
	readBytes  = 1 << 20
	// turnFor is how long one entry may go on before others of its target have
	// their turn.
	turnFor = 10 * time.Second
)

// Reasons of dead letters (spec v2 webhooks.md §Durability).
const (
	exhausted     = "retries_exhausted"
	unprojectable = "payload_unprojectable"
)

// lane is one entry that is being delivered: events of one run for one target, in
// their order.
type lane struct {
	w    *Worker
	d    store.Delivery
	sub  *store.Subscription // nil for a callback URL
	row  store.Run
	page []event.Event // those read behind d.Next
}

// deliver sends what an entry holds, one event after the other, and settles each.
// ctx cuts off an attempt; stop asks for no further one.
func (w *Worker) deliver(ctx, stop context.Context, d store.Delivery) {
	l := &lane{w: w, d: d}
	until := w.cfg.Clock.Now().Add(turnFor)
	for {
		e, err := l.next(ctx)
		switch {
		case errors.Is(err, store.ErrNotFound):
			// The subscription is gone and has taken its entries along, or the run is.
			l.settle(store.Settlement{Next: d.Last + 1, Failures: l.d.Failures, FailingSince: l.d.FailingSince})
			return
		case err != nil:
			w.complain(ctx, "a delivery could not be prepared", err)
			l.putOff(w.cfg.Policy.Backoff)
			return
		case e == nil:
			l.settle(store.Settlement{Next: l.d.Next, Failures: l.d.Failures, FailingSince: l.d.FailingSince})
			return
		case l.sub != nil && !l.sub.DisabledAt.IsZero():
			l.bury()
			return
		}
		if !l.attempt(ctx, e) || l.d.Next > l.d.Last {
			return
		}
		if stop.Err() != nil || !w.cfg.Clock.Now().Before(until) {
			l.putOff(0)
			return
		}
	}
}

// next finds the first event of the entry that its target wants, and moves the
// entry up to it; nil if there is none left. The subscription is read before each
// attempt: it may have been removed, or been given another secret.
func (l *lane) next(ctx context.Context) (*event.Event, error) {
	if l.d.URL == "" {
		s, err := l.w.cfg.Store.Webhooks().Get(ctx, l.d.Tenant, l.d.Target)
		if err != nil {
			return nil, err
		}
		l.sub = &s
	}
	for l.d.Next <= l.d.Last {
		if len(l.page) == 0 {
			row, events, err := l.w.cfg.Store.Runs().Events(ctx, l.d.Run, l.d.Next-1, readEvents, readBytes)
			if err != nil {
				return nil, err
			}
			if len(events) == 0 {
				return nil, store.ErrNotFound // the log ends before what was queued: it is not there any more
			}
			l.row, l.page = row, events
		}
		e := &l.page[0]
		if e.Seq > l.d.Last {
			break
		}
		if e.Seq >= l.d.Next && l.wants(e.Type) {
			l.advanceTo(e.Seq)
			return e, nil
		}
		l.page = l.page[1:]
		l.advanceTo(e.Seq + 1)
	}
	l.advanceTo(l.d.Last + 1)
	return nil, nil
}

func (l *lane) advanceTo(seq int64) {
	if seq != l.d.Next {
		l.d.Next, l.d.Attempts = seq, 0
	}
}

func (l *lane) wants(t event.Type) bool {
	if l.sub == nil {
		return CalledBack(t)
	}
	return wants(l.sub, t)
}

// attempt makes one attempt at an event and settles what came of it. It reports
// whether the entry goes on.
func (l *lane) attempt(ctx context.Context, e *event.Event) bool {
	w := l.w
	id := DeliveryID(l.d.Tenant, l.d.Target, l.d.Run, e.Seq, e.Time)
	form, ok := w.form(l.major())
	if !ok {
		return l.unspoken(e)
	}
	url, header, body, err := l.request(ctx, form, e, id)
	if err != nil {
		w.complain(ctx, "a delivery could not be prepared", err)
		l.putOff(w.cfg.Policy.Backoff)
		return false
	}
	if body == nil { // nothing to tell any more
		return l.done(e, nil)
	}
	out := w.post(ctx, url, header, body)
	switch {
	case out.cut:
		l.putOff(0)
		return false
	case out.ok:
		l.d.Failures, l.d.FailingSince = 0, time.Time{}
		return l.done(e, nil)
	}
	l.d.Attempts++
	if l.d.Failures++; l.d.FailingSince.IsZero() {
		l.d.FailingSince = w.cfg.Clock.Now()
	}
	w.cfg.Log.Debug("a delivery failed", "delivery", id, "target", l.d.Tenant+"/"+l.d.Target, "attempt", l.d.Attempts, "note", out.note)
	if l.d.Attempts >= w.cfg.Policy.MaxAttempts {
		w.cfg.Log.Warn("a delivery was given up", "delivery", id, "target", l.d.Tenant+"/"+l.d.Target, "attempts", l.d.Attempts, "note", out.note)
		letter := w.letter(&l.d, e, l.d.Attempts, out.status, exhausted)
		l.done(e, &letter, out)
		return false
	}
	l.retry(out)
	return false
}

// major is that of the protocol in which the target is spoken to.
func (l *lane) major() int {
	if l.sub != nil {
		return l.sub.Major
	}
	return callbackMajor(l.d.Target)
}

func (l *lane) request(ctx context.Context, form Form, e *event.Event, id string) (url string, h http.Header, body []byte, err error) {
	h = http.Header{"Content-Type": {"application/json"}}
	if agent := form.Agent(); agent != "" {
		h.Set("User-Agent", agent)
	}
	if l.sub == nil {
		url, body, err = l.d.URL, nil, nil
		var c *Called
		if c, err = l.w.cfg.Callback(ctx, l.row, e, l.major()); err == nil && c != nil {
			c.Tenant, c.DeliveryID = l.d.Tenant, id
			body, err = form.Callback(c)
		}
		h.Set("OpenWOP-Event-Type", form.EventType(e.Type))
	} else {
		url = l.sub.URL
		var owner *event.Owner
		if owner, err = ownerOf(&l.row); err == nil {
			body, err = form.Body(owner, e)
		}
	}
	if err != nil || body == nil {
		return url, nil, nil, err
	}
	body = l.w.cfg.Redact.KnownJSON(l.d.Tenant, body)
	if l.sub != nil {
		sign(h, l.sub, form.ID(l.sub.Tenant, l.sub.ID), id, form.EventType(e.Type), body, l.w.cfg.Clock.Now())
	}
	if l.w.cfg.Older != nil {
		twins(h)
	}
	return url, h, body, nil
}

// done moves the entry behind an event that has been dealt with, and reports
// whether it may go on at once.
func (l *lane) done(e *event.Event, letter *store.DeadLetter, failed ...outcome) bool {
	l.advanceTo(e.Seq + 1)
	l.skip()
	s := store.Settlement{Next: l.d.Next, DueAt: l.w.leaseEnd(), Hold: true, Failures: l.d.Failures, FailingSince: l.d.FailingSince}
	if letter != nil && l.sub != nil {
		s.Letters = []store.DeadLetter{*letter}
	}
	if len(failed) > 0 {
		s.DueAt, s.Hold = l.w.cfg.Clock.Now(), false
		l.pause(&s, failed[0])
	}
	return l.settle(s)
}

// unspoken gives up an event for a receiver that knows only a major which this host does
// not serve any more: in another form it would be sent something it cannot read. No
// attempt can change that, so none is made.
func (l *lane) unspoken(e *event.Event) bool {
	l.w.cfg.Log.Warn("a delivery was given up: its receiver knows a major of the protocol that is not served",
		"target", l.d.Tenant+"/"+l.d.Target, "major", l.major(), "fix", "serve that major, or have the receiver register anew")
	letter := l.w.letter(&l.d, e, l.d.Attempts, 0, unprojectable)
	return l.done(e, &letter)
}

// skip moves the entry over events at hand that its target does not want, so that
// an entry with nothing left is recognized.
func (l *lane) skip() {
	for len(l.page) > 0 && l.page[0].Seq <= l.d.Last && (l.page[0].Seq < l.d.Next || !l.wants(l.page[0].Type)) {
		l.advanceTo(max(l.d.Next, l.page[0].Seq+1))
		l.page = l.page[1:]
	}
}

// retry puts a failed attempt off, and lets its endpoint rest.
func (l *lane) retry(out outcome) {
	p := l.w.cfg.Policy
	now := l.w.cfg.Clock.Now()
	wait := max(p.wait(l.d.Attempts, longestWait, l.w.cfg.Random()), min(out.retryAfter, longestAsked))
	s := store.Settlement{Next: l.d.Next, Attempts: l.d.Attempts, DueAt: now.Add(wait), Failures: l.d.Failures, FailingSince: l.d.FailingSince}
	l.pause(&s, out)
	l.settle(s)
}

// pause says how long an endpoint rests that is failing or has asked for it, or that
// it has failed for so long that its subscription is disabled.
func (l *lane) pause(s *store.Settlement, out outcome) {
	p := l.w.cfg.Policy
	now := l.w.cfg.Clock.Now()
	since := now.Sub(l.d.FailingSince)
	if rest := max(p.rest(l.d.Failures, since, l.w.cfg.Random()), min(out.retryAfter, longestAsked)); rest > 0 {
		s.ResumeAt = now.Add(rest)
	}
	if l.sub != nil && l.d.Failures >= disableTimes*p.MaxAttempts && since >= p.DisableAfter {
		s.ResumeAt = now.Add(holdFor)
		s.Disable = fmt.Sprintf("%d attempts in a row failed; the last: %s", l.d.Failures, out.note)
		l.w.cfg.Log.Warn("a webhook was disabled", "webhook", l.d.Tenant+"/"+l.d.Target, "reason", s.Disable)
	}
}

// putOff lets go of the entry as it stands. Nothing was tried, so nothing counts.
func (l *lane) putOff(wait time.Duration) {
	l.settle(store.Settlement{
		Next: l.d.Next, Attempts: l.d.Attempts, DueAt: l.w.cfg.Clock.Now().Add(wait), Failures: l.d.Failures, FailingSince: l.d.FailingSince,
	})
}

// bury makes dead letters of what a disabled subscription has not been enabled for
// in time.
func (l *lane) bury() {
	var letters []store.DeadLetter
	for _, e := range l.page {
		if e.Seq > l.d.Last {
			break
		}
		if l.wants(e.Type) {
			letters = append(letters, l.w.letter(&l.d, &e, l.d.Attempts, 0, exhausted))
		}
		l.advanceTo(e.Seq + 1)
	}
	l.settle(store.Settlement{
		Next: l.d.Next, DueAt: l.w.cfg.Clock.Now(), Letters: letters, Failures: l.d.Failures, FailingSince: l.d.FailingSince,
	})
}

// settle makes what became of the claim durable. It reports whether the claim was
// still this worker's; if the store fails, the claim runs out by itself, and what
// was sent is sent again.
func (l *lane) settle(s store.Settlement) bool {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	s.Delivery, s.Now = l.d, l.w.cfg.Clock.Now()
	err := l.w.cfg.Store.Deliveries().Settle(ctx, s)
	if err != nil && !errors.Is(err, store.ErrStale) {
		l.w.complain(ctx, "a delivery could not be settled", err)
	}
	return err == nil
}
