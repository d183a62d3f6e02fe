package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/fermata-run/fermata/client"
)

// desk is where a session's open questions lie until somebody answers them:
// answers given beforehand, a person at the terminal, or somebody elsewhere.
type desk struct {
	c      *client.Client
	view   view
	root   string
	preset map[string]string // answers given beforehand, by node id
	person *prompter         // nil if nobody sits here
	how    func(q *openQuestion) []string
	remote bool // answers may come from elsewhere

	questions []*openQuestion
	asking    *openQuestion
	callOff   context.CancelCauseFunc
	answered  chan reply
	closed    bool
}

// openQuestion is one interrupt that is open.
type openQuestion struct {
	run, node string
	request   client.Request
	tried     bool // nothing more is to be expected from this terminal
	votes     int  // answers in the log that left it open
	sent      bool // an answer was taken, and the log has not told of it yet
}

// reply is what came of asking.
type reply struct {
	q   *openQuestion
	err error
}

var errWithdrawn = errors.New("the question has been answered elsewhere")

// event keeps the desk up to date.
func (d *desk) event(run string, ev *client.Event) {
	switch ev.Type {
	case "interrupt.requested":
		q := &openQuestion{run: run, node: ev.NodeID}
		if ev.Decode(&q.request) != nil {
			return
		}
		d.questions = append(d.questions, q)
	case "approval.received": // a vote or a question: the gate stays open
		for _, q := range d.questions {
			if q.run == run && q.node == ev.NodeID {
				q.votes++
				q.sent = false
			}
		}
	case "interrupt.resolved", "node.cancelled", "node.failed", "node.completed":
		d.withdraw(func(q *openQuestion) bool { return q.run == run && q.node == ev.NodeID })
	case "run.completed", "run.failed", "run.cancelled":
		d.withdraw(func(q *openQuestion) bool { return q.run == run })
	}
}

func (d *desk) withdraw(which func(*openQuestion) bool) {
	d.questions = slices.DeleteFunc(d.questions, which)
	if d.asking != nil && which(d.asking) {
		d.callOff(errWithdrawn)
	}
}

// next begins with the next question, if none is being dealt with.
func (d *desk) next(ctx context.Context) {
	if d.closed || d.asking != nil {
		return
	}
	i := slices.IndexFunc(d.questions, func(q *openQuestion) bool { return !q.tried })
	if i < 0 {
		return
	}
	q := d.questions[i]
	q.tried = true
	answer, given := d.preset[q.node]
	if !given && d.person == nil {
		for _, line := range d.how(q) {
			d.view.note(line)
		}
		return
	}
	ctx, d.callOff = context.WithCancelCause(ctx)
	d.asking = q
	if !given {
		d.view.hold()
	}
	go func() {
		var err error
		if given {
			err = d.deliver(ctx, q, answer)
		} else {
			err = d.dialogue(ctx, q)
		}
		d.answered <- reply{q, err}
	}()
}

// deliver sends an answer that was given beforehand.
func (d *desk) deliver(ctx context.Context, q *openQuestion, answer string) error {
	v, err := presetValue(q.request, answer)
	if err != nil {
		return err
	}
	_, err = d.c.ResolveInterrupt(ctx, q.run, q.node, v)
	return err
}

// presetValue reads an answer from the command line: an action by its name, or
// the whole answer as JSON.
func presetValue(r client.Request, answer string) (json.RawMessage, error) {
	if slices.Contains(actionsOf(r), answer) {
		return decide(answer, "", nil)
	}
	return inputValue(answer, "")
}

// dialogue asks until the host takes the answer.
func (d *desk) dialogue(ctx context.Context, q *openQuestion) error {
	for {
		v, err := d.person.ask(ctx, q.request)
		if err != nil {
			return err
		}
		_, err = d.c.ResolveInterrupt(ctx, q.run, q.node, v)
		var e *client.Error
		if !errors.As(err, &e) || e.Status != http.StatusBadRequest {
			return err
		}
		d.person.say("  %s", plain(e.Message))
		if f := e.Field(); f != "" {
			d.person.say("  (%s)", plain(f))
		}
	}
}

// settle deals with what came of asking.
func (d *desk) settle(r reply) {
	d.callOff(nil)
	d.asking = nil
	d.view.release()
	switch {
	case r.err == nil:
		r.q.sent = r.q.votes == 0 // the log may have been quicker
	case errors.Is(r.err, errWithdrawn), errors.Is(r.err, context.Canceled), d.closed:
	case errors.Is(r.err, errNoInput):
		d.person = nil // the input has ended: nobody sits here any more
		for _, line := range d.how(r.q) {
			d.view.note(line)
		}
	case client.IsCode(r.err, "interrupt_already_resolved"):
		d.view.note("that had been answered already")
	default:
		d.view.note("the answer for " + plain(r.q.node) + " was not taken: " + plain(r.err.Error()))
	}
}

// close ends all asking.
func (d *desk) close() {
	d.closed = true
	d.questions = nil
	if d.asking != nil {
		d.callOff(errWithdrawn)
	}
}

// stuck reports whether the run waits for answers that cannot come any more:
// nobody sits here, nobody can reach the host, and no timeout will end it.
func (d *desk) stuck(ctx context.Context) bool {
	if d.remote || d.closed || d.asking != nil || len(d.questions) == 0 {
		return false
	}
	for _, q := range d.questions {
		if !q.tried || q.sent || q.request.TimeoutMs != nil && *q.request.TimeoutMs > 0 {
			return false
		}
	}
	// Other nodes may still be at work: only the run itself knows.
	r, err := d.c.GetRun(ctx, d.root)
	return err == nil && r.Status.Waiting()
}

// explain says what the run is stuck on.
func (d *desk) explain() {
	for _, q := range d.questions {
		d.view.note("nobody can answer " + plain(q.node) + " here; the run ends")
	}
}
