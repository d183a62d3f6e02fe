package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// now is the time of every turn in these tests.
var now = time.Date(2031, 3, 30, 1, 2, 3, 456_000_000, time.UTC)

type raws = map[string]json.RawMessage

// in makes an input for a node with a config and ports.
func in(config string, ports ...string) *node.Input {
	i := &node.Input{
		RunID: "acme/run0123456789abcdef", TenantID: "acme", WorkflowID: "w", NodeID: "n1", Name: "Node one",
		Visit: 1, EffectKey: "effect-1", Now: now, Config: json.RawMessage(config),
		Inputs: raws{}, Variables: raws{},
	}
	for k := 0; k < len(ports); k += 2 {
		i.Inputs[ports[k]] = json.RawMessage(ports[k+1])
	}
	i.Services.Eval = stub
	i.Services.Effect = func(ctx context.Context, _ node.Effect, do node.Perform) (json.RawMessage, error) {
		return do(ctx, i.EffectKey)
	}
	return i
}

// stub is the expression language of these tests: a name gives the value of that
// name, "= json" gives json, "is name json" compares, "fail" fails.
func stub(source string, extra map[string]json.RawMessage) (json.RawMessage, error) {
	if v, ok := extra[source]; ok {
		return v, nil
	}
	if v, ok := strings.CutPrefix(source, "= "); ok {
		return json.RawMessage(v), nil
	}
	if rest, ok := strings.CutPrefix(source, "is "); ok {
		name, want, _ := strings.Cut(rest, " ")
		return json.Marshal(string(extra[name]) == want)
	}
	switch source {
	case "fail":
		return nil, errors.New("no such thing")
	case "fail hard":
		return nil, node.Retry("service_unavailable", "later")
	case "nothing":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown expression %q", source)
}

func typeOf(t *testing.T, id string) node.Type {
	t.Helper()
	g := egress.New(egress.Options{})
	t.Cleanup(g.Close)
	for _, nt := range All(Deps{Egress: g}) {
		if nt.ID == id {
			return nt
		}
	}
	t.Fatalf("there is no type %s", id)
	return node.Type{}
}

func run(t *testing.T, id string, i *node.Input) (node.Result, error) {
	t.Helper()
	nt := typeOf(t, id)
	r, err := nt.Run(context.Background(), i)
	if err == nil {
		err = r.Err()
	}
	if err == nil && r.Kind() == node.Completed {
		keepsItsWord(t, nt, i, r)
	}
	return r, err
}

// keepsItsWord holds a result against what its type says it puts out.
func keepsItsWord(t *testing.T, nt node.Type, i *node.Input, r node.Result) {
	t.Helper()
	var p node.Ports
	if nt.Ports != nil {
		p = nt.Ports(i.Config)
	}
	for name := range r.Outputs() {
		if p.Outputs != nil && !slices.Contains(p.Outputs, name) {
			t.Errorf("%s %s puts out %s, but says it puts out %v", nt.ID, i.Config, name, p.Outputs)
		}
	}
	for _, port := range r.Ports() {
		if !slices.Contains(p.Branches, port) {
			t.Errorf("%s %s takes %s, but says it takes %v", nt.ID, i.Config, port, p.Branches)
		}
	}
}

// completes runs a node and compares its outputs as one object.
func completes(t *testing.T, id string, i *node.Input, want string) node.Result {
	t.Helper()
	r, err := run(t, id, i)
	if err != nil {
		t.Errorf("%s %s: %v", id, i.Config, err)
		return r
	}
	if r.Kind() != node.Completed {
		t.Errorf("%s %s: result kind %d", id, i.Config, r.Kind())
	}
	if got := outputs(r); got != want {
		t.Errorf("%s %s %v\n got %s\nwant %s", id, i.Config, i.Inputs, got, want)
	}
	return r
}

func outputs(r node.Result) string {
	var o object
	for _, name := range sortedKeys(r.Outputs()) {
		o = append(o, pair{name, r.Outputs()[name]})
	}
	return string(o.raw())
}

// fails runs a node and returns its failure, which must have the code given and
// mention the text given.
func fails(t *testing.T, id string, i *node.Input, code, mention string) *node.Error {
	t.Helper()
	_, err := run(t, id, i)
	return failedWith(t, fmt.Sprintf("%s %s %v", id, i.Config, i.Inputs), err, code, mention)
}

func failedWith(t *testing.T, what string, err error, code, mention string) *node.Error {
	t.Helper()
	var e *node.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %v", what, err)
		return &node.Error{}
	}
	if e.Code != code || !strings.Contains(e.Message, mention) {
		t.Errorf("%s:\n got %v\nwant %s … %s", what, e, code, mention)
	}
	return e
}

// badConfig expects a refusal at run time that names a member.
func badConfig(t *testing.T, id string, i *node.Input, field string) {
	t.Helper()
	e := fails(t, id, i, node.CodeConfig, field)
	if e.Retryable || e.Details["field"] != field {
		t.Errorf("%s %s: details %v", id, i.Config, e.Details)
	}
}

func check(t *testing.T, id, config string) error {
	t.Helper()
	nt := typeOf(t, id)
	if nt.Check == nil {
		return nil
	}
	return nt.Check(node.CheckContext{Config: json.RawMessage(config), Expression: compileStub})
}

// compileStub accepts what stub would, over the names given.
func compileStub(source string, extra ...string) error {
	for _, name := range extra {
		if source == name || strings.HasPrefix(source, "is "+name+" ") {
			return nil
		}
	}
	if strings.HasPrefix(source, "= ") || strings.HasPrefix(source, "fail") || source == "nothing" {
		return nil
	}
	return fmt.Errorf("cannot compile %q", source)
}

// refused expects a registration to be refused with a mention of a member.
func refused(t *testing.T, id, config, mention string) {
	t.Helper()
	failedWith(t, id+" "+config, check(t, id, config), node.CodeConfig, mention)
}

func accepted(t *testing.T, id, config string) {
	t.Helper()
	if err := check(t, id, config); err != nil {
		t.Errorf("%s %s: %v", id, config, err)
	}
}

func sameJSON(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	if string(got) != want {
		t.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}
