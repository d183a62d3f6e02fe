package flow_test

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/go-json-experiment/json/jsontext"
)

// undoing is a workflow of two nodes, of which the first has a compensation; either
// part may be empty.
func undoing(policy, compensation string) string {
	extra, settings, edge := "", "{}", ""
	if strings.Contains(compensation, "no. ${nodes.b") { // one that refers to b must have it before itself
		edge = `{"id":"e","sourceNodeId":"b","targetNodeId":"a.output.b"}`
	}
	if compensation != "" {
		extra = `,"compensation":` + compensation
	}
	if policy != "" {
		settings = `{"compensation":` + policy + `}`
	}
	return `{"id":"w","name":"W","version":"1","nodes":[
{"id":"a.output.b","typeId":"test.task","name":"N","position":{"x":0,"y":0},"config":{},"inputs":{}` + extra + `},
{"id":"b","typeId":"test.task","name":"N","position":{"x":0,"y":0},"config":{},"inputs":{}}
],"edges":[` + edge + `],"triggers":[],"variables":[],"metadata":{},
"settings":` + settings + `}`
}

const fires = `{"triggers":["node-failure"]}`

// Whatever a host would not honour is refused when it is handed in, with the member
// it is about.
func TestCompensationIssues(t *testing.T) {
	for name, c := range map[string]struct{ policy, node, field, says string }{
		"no trigger":            {`{}`, ``, "settings.compensation.triggers", "at least one"},
		"unknown trigger":       {`{"triggers":["node-failure","full-moon"]}`, ``, "settings.compensation.triggers[1]", `"full-moon"`},
		"trigger twice":         {`{"triggers":["run-cancel","run-cancel"]}`, ``, "settings.compensation.triggers[1]", "twice"},
		"trigger type":          {`{"triggers":"run-cancel"}`, ``, "settings.compensation.triggers", "not allowed"},
		"unknown member":        {`{"triggers":["run-cancel"],"mode":"auto"}`, ``, "settings.compensation.mode", "unknown"},
		"profile":               {`{"triggers":["run-cancel"],"profileVersion":"2"}`, ``, "settings.compensation.profileVersion", `"2"`},
		"ordering":              {`{"triggers":["run-cancel"],"orderingModel":"dependency-graph"}`, ``, "settings.compensation.orderingModel", "dependency-graph"},
		"disposition":           {`{"triggers":["run-cancel"],"exhaustedDisposition":"shrug"}`, ``, "settings.compensation.exhaustedDisposition", "record-outcome or manual-intervention"},
		"approval scope":        {`{"triggers":["run-cancel"],"approvalScope":"none"}`, ``, "settings.compensation.approvalScope", `"none"`},
		"parent's end":          {`{"triggers":["run-cancel"],"onParentCancel":"stop"}`, ``, "settings.compensation.onParentCancel", "continue, pause or manual"},
		"parent's end not here": {`{"triggers":["run-cancel"],"onParentCancel":"pause"}`, ``, "settings.compensation.onParentCancel", "not provided"},
		"timeout":               {`{"triggers":["run-cancel"],"timeoutMs":-1}`, ``, "settings.compensation.timeoutMs", "negative"},
		"policy attempts":       {`{"triggers":["run-cancel"],"retry":{"maxAttempts":0}}`, ``, "settings.compensation.retry.maxAttempts", "1 to 100"},
		"policy backoff":        {`{"triggers":["run-cancel"],"retry":{"backoffMs":-1}}`, ``, "settings.compensation.retry.backoffMs", "0 to"},

		"no type":          {fires, `{}`, "nodes[0].compensation.nodeTypeId", "required"},
		"type grammar":     {fires, `{"nodeTypeId":"refund"}`, "nodes[0].compensation.nodeTypeId", "dotted"},
		"unknown type":     {fires, `{"nodeTypeId":"acme.refund"}`, "nodes[0].compensation.nodeTypeId", "unknown node type"},
		"without a policy": {``, `{"nodeTypeId":"acme.refund"}`, "nodes[0].compensation.nodeTypeId", "unknown node type"},
		"reserved type":    {fires, `{"nodeTypeId":"core.dispatch"}`, "nodes[0].compensation.nodeTypeId", "agents.dispatch"},
		"needs a config":   {fires, `{"nodeTypeId":"test.sum"}`, "nodes[0].compensation.nodeTypeId", "without a config"},
		"checks a config":  {fires, `{"nodeTypeId":"test.when"}`, "nodes[0].compensation.nodeTypeId", "when is missing"},
		"odd schema":       {fires, `{"nodeTypeId":"test.odd"}`, "nodes[0].compensation.nodeTypeId", "schema"},
		"node member":      {fires, `{"nodeTypeId":"test.task","undo":true}`, "nodes[0].compensation.undo", "unknown"},
		"node attempts":    {fires, `{"nodeTypeId":"test.task","retry":{"maxAttempts":101}}`, "nodes[0].compensation.retry.maxAttempts", "1 to 100"},
		"mapping type":     {fires, `{"nodeTypeId":"test.task","inputMapping":[]}`, "nodes[0].compensation.inputMapping", ""},
		"reference form":   {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":"${variables.x}"}}`, "nodes[0].compensation.inputMapping.x", "no reference"},
		"reference open":   {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":"a ${inputs.b"}}`, "nodes[0].compensation.inputMapping.x", "not closed"},
		"reference node":   {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":["${nodes.c.output.id}"]}}`, "nodes[0].compensation.inputMapping.x", "names no node"},
		"reference port":   {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":{"y":"${nodes.b.output.}"}}}`, "nodes[0].compensation.inputMapping.x", "names no node"},
		"later node":       {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":"${nodes.b.output.id}"}}`, "nodes[0].compensation.inputMapping", "does not come before"},
		"reference input":  {fires, `{"nodeTypeId":"test.task","inputMapping":{"x":"${inputs.}"}}`, "nodes[0].compensation.inputMapping.x", "no reference"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flow.Check([]byte(undoing(c.policy, c.node)), catalog())
			for _, is := range issuesOf(t, err) {
				if is.Field == c.field && strings.Contains(is.Message, c.says) {
					return
				}
			}
			t.Errorf("got %v, want %s: …%s…", err, c.field, c.says)
		})
	}
}

// A definition that was registered when compensations were read past must go on.
func TestOldCompensationIsReadPast(t *testing.T) {
	old := []byte(undoing("", `{"nodeTypeId":"acme.refund"}`))
	if _, err := flow.Load(old, catalog()); err != nil {
		t.Errorf("a stored definition is refused: %v", err)
	}
}

func TestInverseBounds(t *testing.T) {
	for _, c := range []struct {
		policy, node      string
		attempts          int
		backoff           int64
		approval, waiving bool
	}{
		{fires, `{"nodeTypeId":"test.task"}`, 3, 1000, false, false},
		{`{"triggers":["node-failure"],"retry":{"maxAttempts":7,"backoffMs":5}}`, `{"nodeTypeId":"test.task"}`, 7, 5, false, false},
		{`{"triggers":["node-failure"],"retry":{"maxAttempts":7,"backoffMs":5}}`, `{"nodeTypeId":"test.task","retry":{"maxAttempts":1}}`, 1, 5, false, false},
		{fires, `{"nodeTypeId":"test.task","retry":{"backoffMs":0}}`, 3, 0, false, false},
		{fires, `{"nodeTypeId":"test.task","requiresApproval":true}`, 3, 1000, true, true},
		{fires, `{"nodeTypeId":"test.task","requiresApproval":true,"waiveRequiresApproval":false}`, 3, 1000, true, false},
		{fires, `{"nodeTypeId":"test.task","waiveRequiresApproval":true}`, 3, 1000, false, true},
		// A policy raises and never lowers.
		{`{"triggers":["node-failure"],"approvalScope":"all"}`, `{"nodeTypeId":"test.task","waiveRequiresApproval":false}`, 3, 1000, true, true},
		{`{"triggers":["node-failure"],"approvalScope":"declared"}`, `{"nodeTypeId":"test.task","requiresApproval":true}`, 3, 1000, true, true},
	} {
		w, err := flow.Check([]byte(undoing(c.policy, c.node)), catalog())
		if err != nil {
			t.Errorf("%s %s: %v", c.policy, c.node, err)
			continue
		}
		i := w.Steps[0].Inverse
		if i.MaxAttempts != c.attempts || i.BackoffMs != c.backoff || i.NeedsApproval != c.approval || i.WaiveApproval != c.waiving {
			t.Errorf("%s %s: %+v", c.policy, c.node, i)
		}
		if w.Steps[1].Inverse != nil {
			t.Error("a node that says nothing has an inverse action")
		}
	}
}

// A reference that stands alone is the recorded value itself, byte by byte; within
// text it is text; everything else keeps its bytes.
func TestMappingResolves(t *testing.T) {
	mapping := `{"whole":"${nodes.b.output.n}","dotted":"${nodes.a.output.b.output.id}","text":"no. ${nodes.b.output.n} of ${inputs.who}: ${nodes.b.output.o}",` +
		`"deep":{"k":["${inputs.who}",1.0]},"plain":1.50,"dollar":"$5"}`
	w, err := flow.Check([]byte(undoing(fires, `{"nodeTypeId":"test.task","inputMapping":`+mapping+`}`)), catalog())
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{
		"${nodes.b.output.n}": `10.00`, "${nodes.a.output.b.output.id}": `"x\u00e9"`, "${inputs.who}": `"ann"`, "${nodes.b.output.o}": `{"z":1}`,
	}
	fact := func(r flow.Ref) (jsontext.Value, bool) {
		v, ok := facts[r.String()]
		return jsontext.Value(v), ok
	}
	m := &w.Steps[0].Inverse.Mapping
	got, err := m.Resolve(fact)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"whole": `10.00`, "dotted": `"x\u00e9"`, "text": `"no. 10.00 of ann: {\"z\":1}"`, "deep": `{"k":["ann",1.0]}`, "plain": `1.50`, "dollar": `"$5"`,
	} {
		if string(got[k]) != want {
			t.Errorf("%s is %s, want %s", k, got[k], want)
		}
	}
	if len(m.Refs()) != 6 {
		t.Errorf("%d references", len(m.Refs()))
	}
	delete(facts, "${inputs.who}")
	if _, err := m.Resolve(fact); err == nil || !strings.Contains(err.Error(), "${inputs.who}") {
		t.Errorf("a missing fact: %v", err)
	}
}
