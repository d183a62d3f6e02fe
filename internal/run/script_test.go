package run_test

import (
	"context"
	stdjson "encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"github.com/fermata-run/fermata/schema"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected events of the scripts")

// catalog is the built-in node types, and test.task, whose results a script
// gives by hand.
type catalog map[string]*node.Type

func (c catalog) Type(id string) (*node.Type, bool) { t, ok := c[id]; return t, ok }

func types() catalog {
	c := catalog{}
	all := builtin.All(builtin.Deps{})
	for i := range all {
		c[all[i].ID] = &all[i]
	}
	c["test.task"] = &node.Type{ID: "test.task", Run: func(context.Context, *node.Input) (node.Result, error) {
		panic("a scripted task is not run")
	}}
	c["test.secret"] = &node.Type{ID: "test.secret", Sensitive: []string{"token"}, Run: c["test.task"].Run}
	return c
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world drives one run by hand: it makes the calls of pure nodes as the engine
// would and keeps those of tasks until the script gives their results.
type world struct {
	t       testing.TB
	wf      *flow.Workflow
	s       *run.State
	now     time.Time
	lim     run.Limits
	log     []event.Event
	pending map[string]run.Execute // by node
	effects []string

	// Of a fork, and of a replay alone.
	source    *world
	record    *run.Record
	held      map[string]run.NodeResult
	calls     map[string]run.Execute
	forks     int
	cancelled []string // child runs
}

func newWorld(t testing.TB, def []byte) *world {
	t.Helper()
	wf, err := flow.Load(def, types())
	if err != nil {
		t.Fatalf("workflow: %v", err)
	}
	id := ids.Run{Tenant: "acme", Opaque: "run-0000000000000001"}
	return &world{t: t, wf: wf, s: run.New(id, wf), now: epoch, lim: run.DefaultLimits(), pending: map[string]run.Execute{}}
}

func (w *world) decide(c run.Command) error {
	w.t.Helper()
	d, err := run.Decide(w.s, c, run.Env{Now: w.now, Limits: w.lim, Source: w.record})
	if err != nil {
		if len(d.Events) > 0 {
			w.t.Fatalf("refused with %v, yet it emitted %d events", err, len(d.Events))
		}
		return err
	}
	w.log = append(w.log, d.Events...)
	for _, x := range d.Effects {
		w.effect(x)
	}
	return nil
}

func (w *world) effect(x run.Effect) {
	w.t.Helper()
	switch x := x.(type) {
	case run.Execute:
		if v := x.Inverse; v != nil {
			w.pending["undo "+x.NodeID] = x
			w.effects = append(w.effects, fmt.Sprintf("undo %s visit %d attempt %d by %s as %s with %s",
				x.NodeID, x.Visit, x.Attempt, v.TypeID, v.EffectKey, run.EncodeObject(x.Inputs)))
			return
		}
		step, _ := w.wf.Step(x.NodeID)
		if !step.Type.Pure {
			if w.record != nil {
				w.t.Fatalf("a replay executes node %s\n%s\n%s", x.NodeID, dump(w.source.log), dump(w.log))
			}
			w.pending[x.NodeID] = x
			return
		}
		if w.record != nil {
			w.calls[x.NodeID] = x // its turn comes
			return
		}
		r := w.call(step, x)
		if err := w.decide(r); err != nil {
			w.t.Fatal(err)
		}
	case run.Abort:
		what := x.NodeID
		if x.Inverse > 0 {
			what = "undo " + what
		}
		if p, ok := w.pending[what]; ok && p.Attempt == x.Attempt && p.Visit == x.Visit {
			delete(w.pending, what)
		}
		w.effects = append(w.effects, "abort "+what)
	case run.StartChild:
		w.effects = append(w.effects, "start child of "+x.NodeID+" "+x.WorkflowID+" "+string(run.EncodeObject(x.Inputs)))
	case run.CancelChild:
		w.effects = append(w.effects, "cancel child")
		w.cancelled = append(w.cancelled, x.RunID.String())
	}
}

func (w *world) call(step *flow.Step, x run.Execute) run.NodeResult {
	in := &node.Input{
		RunID: w.s.ID.String(), TenantID: "acme", WorkflowID: w.wf.Def.ID, NodeID: x.NodeID, TypeID: step.Type.ID,
		Name: step.Node.Name, Visit: x.Visit, Attempt: x.Attempt, Now: w.now,
		Config: stdjson.RawMessage(step.Node.Config), Inputs: run.Raws(x.Inputs), Variables: run.Raws(w.s.Variables),
	}
	in.Services.Eval = func(source string, extra map[string]stdjson.RawMessage) (stdjson.RawMessage, error) {
		more := map[string]jsontext.Value{}
		var names []string
		for k, v := range extra {
			more[k] = jsontext.Value(v)
			names = append(names, k)
		}
		p, err := expr.Compile(source, names...)
		if err != nil {
			return nil, node.Fail(node.CodeConfig, "%v", err)
		}
		v, err := p.Eval(w.s.Scope(more))
		if err != nil {
			return nil, node.Fail(node.CodeConfig, "%v", err)
		}
		return stdjson.RawMessage(v), nil
	}
	if x.Wake != nil {
		in.Wake = &node.Wake{State: stdjson.RawMessage(x.Saved), Timer: x.Wake.Timer}
		if a := x.Wake.Answer; a != nil {
			in.Wake.Answer = &node.Answer{InterruptID: a.InterruptID, Kind: a.Kind, Value: stdjson.RawMessage(a.Value), Action: a.Action, TimedOut: a.TimedOut, By: a.By, Exchange: a.Said()}
		}
		if x.Wake.Children {
			for _, c := range w.s.Children(x.NodeID) {
				in.Wake.Children = append(in.Wake.Children, node.ChildResult{
					RunID: c.RunID, WorkflowID: c.WorkflowID, Key: c.Key, Status: c.Status, Ended: run.Terminal(c.Status),
					Outputs: stdjson.RawMessage(`{"ok":true}`), Variables: map[string]stdjson.RawMessage{"result": stdjson.RawMessage(`"r"`)},
				})
			}
			in.Wake.Load = func(i int) (node.ChildResult, error) { return in.Wake.Children[i], nil }
		}
	}
	out := run.NodeResult{NodeID: x.NodeID, Visit: x.Visit, Attempt: x.Attempt}
	r, err := step.Type.Run(context.Background(), in)
	out.Writes, out.Logs = in.Recorded()
	if err != nil {
		e, ok := err.(*node.Error)
		if !ok {
			e = node.Retry(node.CodeInternal, "%v", err)
		}
		out.Err, out.Writes = e, nil
		return out
	}
	out.Result = r
	return out
}

// finish gives the result of a task that is being executed.
func (w *world) finish(nodeID string, r node.Result, err *node.Error) {
	w.t.Helper()
	x, ok := w.pending[nodeID]
	if !ok {
		w.t.Fatalf("node %s is not being executed", nodeID)
	}
	delete(w.pending, nodeID)
	c := run.NodeResult{NodeID: x.NodeID, Visit: x.Visit, Attempt: x.Attempt, Result: r, Err: err}
	if x.Inverse != nil {
		c.Inverse = x.Inverse.Order
	}
	if e := w.decide(c); e != nil {
		w.t.Fatal(e)
	}
}

// check holds the promise of the core: folding the log gives the live state, and
// so does a checkpoint.
func (w *world) check() {
	w.t.Helper()
	live, err := w.s.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	folded := run.New(w.s.ID, w.wf)
	if w.s.Fork != nil {
		folded = run.NewFork(w.s.ID, w.wf, *w.s.Fork)
	}
	for i := range w.log {
		w.valid(&w.log[i])
		e, err := event.Decode(w.log[i].Doc(), w.log[i].Sealed)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := folded.Fold(&e); err != nil {
			w.t.Fatal(err)
		}
	}
	if b, _ := folded.Encode(); string(b) != string(live) {
		w.t.Fatalf("the fold of the log is not the live state\nlive:   %s\nfolded: %s", live, b)
	}
	again, err := run.Decode(w.s.ID, w.wf, live)
	if err != nil {
		w.t.Fatal(err)
	}
	if b, _ := again.Encode(); string(b) != string(live) {
		w.t.Fatalf("a checkpoint does not read back\nlive: %s\nread: %s", live, b)
	}
	if again.Status() != w.s.Status() {
		w.t.Fatalf("status %s, from the checkpoint %s", w.s.Status(), again.Status())
	}
}

var (
	seenMu sync.Mutex
	seen   = map[event.Type]bool{}
)

// valid holds an event against the envelope's schema and its type's payload
// schema.
func (w *world) valid(e *event.Event) {
	w.t.Helper()
	if err := schema.Validate("run-event", e.Doc()); err != nil {
		w.t.Fatalf("event %d %s: %v\n%s", e.Seq, e.Type, err, e.Doc())
	}
	for _, p := range []jsontext.Value{e.Payload, e.Sealed} {
		if p == nil {
			continue
		}
		if err := schema.ValidatePayload(string(e.Type), p); err != nil {
			w.t.Fatalf("event %d %s: %v\n%s", e.Seq, e.Type, err, p)
		}
	}
	seenMu.Lock()
	seen[e.Type] = true
	seenMu.Unlock()
}

// emitted lists every type the core can emit; the scripts together must show
// each of them, so that each has been held against its schema.
var emitted = []event.Type{
	event.RunStarted, event.RunCompleted, event.RunFailed, event.RunCancelled, event.RunPaused, event.RunResumed,
	event.NodeStarted, event.NodeCompleted, event.NodeFailed, event.NodeSuspended, event.NodeResumed, event.NodeRetried,
	event.NodeSkipped, event.NodeCancelled, event.NodeDispatched, event.ApprovalReceived, event.ApprovalOverridden, event.InterruptRequested,
	event.ApprovalRequested, event.ApprovalGranted, event.ApprovalRejected, event.ClarificationRequested, event.ClarificationResolved,
	event.InterruptResolved, event.ChannelWritten, event.OutputChunk, event.VariableChanged, event.LogAppended,
	event.LoopbackLimit, event.CapBreached, event.ReplayDiverged,
	event.CompensationRequested, event.CompensationStarted, event.CompensationCompleted, event.CompensationFailed,
	event.CompensationPaused, event.CompensationManual, event.AuthorizationDecided,
}

// TestScripts runs every script of testdata: a workflow, commands, and the
// events and effects that must follow. Rewrite them with -update and review the
// difference.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txt"), func(t *testing.T) { runScript(t, p) })
	}
	for _, typ := range emitted {
		if !seen[typ] {
			t.Errorf("no script emits %s", typ)
		}
	}
}

func runScript(t *testing.T, path string) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) (int, string) {
		for i, f := range ar.Files {
			if f.Name == name {
				return i, string(f.Data)
			}
		}
		t.Fatalf("%s has no part %s", path, name)
		return 0, ""
	}
	_, def := part("workflow.json")
	_, script := part("script")
	at, want := part("events")
	w := newWorld(t, []byte(def))
	var out strings.Builder
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fmt.Fprintf(&out, "> %s\n", line)
		from := len(w.log)
		w.effects = nil
		if strings.HasPrefix(line, "fork") {
			from = 0
		}
		if err := w.command(line); err != nil {
			fmt.Fprintf(&out, "refused: %s\n", refusal(err))
		}
		for i := range w.log[from:] {
			out.WriteString(line2(&w.log[from+i]))
		}
		for _, x := range w.effects {
			fmt.Fprintf(&out, "effect: %s\n", x)
		}
		fmt.Fprintf(&out, "= %s%s%s\n", w.s.Status(), suffix(w.s.CurrentNode()), undoing(w.s))
		w.check()
	}
	if got := out.String(); got != want {
		if *update {
			ar.Files[at].Data = []byte(got)
			if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("events differ\n--- got\n%s--- want\n%s", got, want)
	}
}

func undoing(s *run.State) string {
	if s.CompensationStatus() == run.UndoNone {
		return ""
	}
	p := s.Compensation()
	var b strings.Builder
	fmt.Fprintf(&b, ", compensation %s:", s.CompensationStatus())
	for _, x := range p.Attempts {
		fmt.Fprintf(&b, " %s/%d %s", x.NodeID, x.Attempt, x.Outcome)
		if x.Reason != "" {
			fmt.Fprintf(&b, " (%s)", x.Reason)
		}
	}
	return b.String()
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return " at " + s
}

func refusal(err error) string {
	p := problem.From(err)
	return fmt.Sprintf("%s %s %v", p.Code, p.Message, p.Details)
}

func line2(e *event.Event) string {
	sealed := ""
	if e.Sealed != nil {
		sealed = " sealed"
	}
	return fmt.Sprintf("%d %s %s%s\n", e.Seq, e.Type, e.Payload, sealed)
}

// command runs one line of a script.
func (w *world) command(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	arg, body, _ := strings.Cut(rest, " ")
	switch verb {
	case "start":
		return w.decide(run.Start{Owner: owner("alice"), Transport: "rest", Inputs: raw(rest)})
	case "configure":
		return w.decide(run.Start{Owner: owner("alice"), Transport: "rest", Configurable: raw(rest)})
	case "done":
		var m map[string]stdjson.RawMessage
		if body != "" {
			if err := stdjson.Unmarshal([]byte(body), &m); err != nil {
				w.t.Fatal(err)
			}
		}
		w.finish(arg, node.DoneRaw(m), nil)
	case "ask": // for something of the author's own key
		w.finish(arg, node.Suspend(node.Interrupt{Kind: "custom", Key: body, Data: stdjson.RawMessage(`{"customKind":"x"}`)}, nil), nil)
	case "undone":
		w.finish("undo "+arg, node.DoneRaw(nil), nil)
	case "unfit":
		w.finish("undo "+arg, node.Sleep(w.now.Add(time.Hour), nil), nil)
	case "undo-fails":
		w.finish("undo "+arg, node.Result{}, node.Fail("upstream_unavailable", "%s", body))
	case "undo-retries":
		w.finish("undo "+arg, node.Result{}, node.Retry("upstream_unavailable", "%s", body))
	case "undone-late": // of an attempt that is not the newest
		x := w.pending["undo "+arg]
		return w.decide(run.NodeResult{NodeID: arg, Visit: x.Visit, Attempt: x.Attempt - 1, Result: node.DoneRaw(nil), Inverse: x.Inverse.Order})
	case "operate": // ACTION ORDER [TYPE | REASON]
		order, more, _ := strings.Cut(body, " ")
		n, err := strconv.Atoi(order)
		if err != nil {
			w.t.Fatal(err)
		}
		c := run.Operate{Action: arg, Order: n, By: "urn:test olga"}
		if arg == run.UndoSubstitute {
			c.TypeID = more
		} else {
			c.Reason = more
		}
		return w.decide(c)
	case "fail":
		w.finish(arg, node.Result{}, node.Fail("upstream_unavailable", "%s", body))
	case "retry":
		w.finish(arg, node.Result{}, node.Retry("upstream_unavailable", "%s", body))
	case "answer":
		// ann+group:ops+role:lead is ann, who is in ops and a lead; with for:eve she
		// vouches for eve's vote, and with via:token she comes with a token.
		party, value, _ := strings.Cut(body, " ")
		who, belongs, _ := strings.Cut(party, "+")
		of, voter, via := identity.Membership{Source: "script"}, "", ""
		for _, b := range strings.Split(belongs, "+") {
			if g, ok := strings.CutPrefix(b, "group:"); ok {
				of.Groups = append(of.Groups, g)
			} else if r, ok := strings.CutPrefix(b, "role:"); ok {
				of.Roles = append(of.Roles, r)
			} else if v, ok := strings.CutPrefix(b, "for:"); ok {
				voter = v
			} else if v, ok := strings.CutPrefix(b, "via:"); ok {
				via = v
			}
		}
		by := owner(who).Subject
		return w.decide(run.Resolve{NodeID: arg, Value: raw(value), Subject: by, Voter: voter, Via: via, Judge: host.Approver(by, of, host.Override{"role:boss"})})
	case "advance":
		d, err := time.ParseDuration(arg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(d)
		return w.decide(run.Tick{})
	case "later": // time passes, but no timer is heard
		d, err := time.ParseDuration(arg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "cancel":
		return w.decide(run.Cancel{Reason: rest, By: "alice"})
	case "pause":
		return w.decide(run.Pause{DrainPolicy: arg})
	case "resume":
		return w.decide(run.Resume{})
	case "recover":
		clear(w.pending) // the process that made the calls is gone
		return w.decide(run.Recover{})
	case "child":
		n := w.s.Children(arg)
		id, err := ids.ParseRun(n[len(n)-1].RunID)
		if err != nil {
			w.t.Fatal(err)
		}
		return w.decide(run.ChildNews{RunID: id, Status: body})
	case "chunk":
		x := w.pending[arg]
		return w.decide(run.NodeChunk{NodeID: arg, Visit: x.Visit, Attempt: x.Attempt, Text: body, Last: body == "."})
	case "egress": // a decision on a call of a node
		x := w.pending[arg]
		var d event.Egress
		d.Decision, d.Reason, _ = strings.Cut(body, " ")
		d.Destination, d.CredentialID = "api.example.com", "cred_1"
		c := run.NodeEgress{NodeID: arg, Visit: x.Visit, Attempt: x.Attempt, Decision: d}
		if u, ok := w.pending["undo "+arg]; ok {
			c.Attempt, c.Inverse = u.Attempt, u.Inverse.Order
		}
		return w.decide(c)
	case "payload": // as many bytes as the argument is long
		w.lim.MaxPayloadBytes = len(body)
	case "legacy": // events of the older types are wanted, too
		w.lim.LegacyEvents = true
	case "older": // what readers of v1 look for is wanted, too
		w.lim.OlderMajor = true
	case "fork": // MODE SEQ OPTIONS: from here on the script is about the fork
		num, options, _ := strings.Cut(body, " ")
		seq, err := strconv.ParseInt(num, 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		var o *event.ForkOptions
		if options != "" {
			o = &event.ForkOptions{}
			if err := stdjson.Unmarshal([]byte(options), o); err != nil {
				w.t.Fatal(err)
			}
		}
		v, err := w.fork(arg, seq, o)
		src := *w
		v.source = &src
		*w = *v
		return err
	case "said": // SEQ PAYLOAD: what the run has said is something else
		seq, err := strconv.Atoi(arg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.log[seq].Payload, w.log[seq].Sealed = raw(body), nil
	case "limit":
		w.lim.MaxNodeExecutions = len(body)
	default:
		w.t.Fatalf("unknown command %q", verb)
	}
	return nil
}

func raw(s string) jsontext.Value {
	if s == "" {
		return nil
	}
	return jsontext.Value(s)
}

func owner(who string) event.Owner {
	return event.Owner{Tenant: "acme", Subject: event.Subject{Issuer: "urn:test", SubjectID: who, Tenant: "acme", Lane: "api-key", Kind: "user"}}
}
