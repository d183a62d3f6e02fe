package conformance

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	optionsLimits = "v2-run-options-limits"
	optionsRef    = "openwop.requirement.0171.run-options-limits"
)

var optionChecks = []check{
	must("options.absent", "runs.md §Create", "a body without run options is taken as one with empty options", func(p *probe) {
		p.ok(p.create(p.workflow(noop)), 201, "create-run-response")
		p.ok(p.create(p.workflow(noop), object{"tags": []string{}, "metadata": object{}}), 201, "create-run-response")
	}),

	must("options.tag-limits", "runs.md §tags and metadata", "more than 100 tags, or one of more than 256 characters, is a validation_error", func(p *probe) {
		many := make([]string, 101)
		for i := range many {
			many[i] = fmt.Sprint("t", i)
		}
		wf := p.workflow(noop)
		p.refused(p.create(wf, object{"tags": many}), 400, "validation_error")
		p.refused(p.create(wf, object{"tags": []string{strings.Repeat("y", 257)}}), 400, "validation_error")
		p.ok(p.create(wf, object{"tags": many[:100]}), 201, "")
	}).floor(optionsLimits, optionsRef),

	must("options.tags-free", "runs.md §tags and metadata", "a tag of any format is taken and comes back as it is", func(p *probe) {
		tags := []string{"two words", "🚀", "a/b:c|d", "UPPER-and_under", strings.Repeat("é", 256), "a,b", `"`, "same", "same"}
		a := p.ok(p.create(p.workflow(noop), object{"tags": tags}), 201, "")
		want, _ := json.Marshal(tags)
		got := p.snapshot(a.str("runId")).obj()["tags"]
		p.want(same(got, want), "tags came back as %s", got)
	}).floor(optionsLimits, optionsRef),

	must("options.metadata", "runs.md §tags and metadata", "metadata comes back as it is", func(p *probe) {
		const meta = `{"b":1,"a":{"n":[1,"2",null,true,-0.5]},"":"∞","workflowId":"other","status":"failed"}`
		a := p.ok(p.create(p.workflow(noop), object{"metadata": json.RawMessage(meta)}), 201, "")
		got := p.snapshot(a.str("runId")).obj()["metadata"]
		p.want(same(got, []byte(meta)), "metadata came back as %s", got)
	}).floor(optionsLimits, optionsRef),

	must("options.configurable-closed", "runs.md §Validation and persistence", "an unknown, misplaced or dotted member of configurable is a validation_error", func(p *probe) {
		wf := p.workflow(noop)
		for _, c := range []string{
			`{}`, `{"version":2}`, `{"version":"1"}`, `{"version":1,"unknown":{}}`, `{"version":1,"run":{"unknown":1}}`,
			`{"version":1,"ai":{"unknown":1}}`, `{"version":1,"ai.model":"x"}`, `{"version":1,"recursionLimit":5}`,
			`{"version":1,"distillation":{"unknown":1}}`, `{"version":1,"run":[]}`, `[]`,
		} {
			a := p.create(wf, object{"configurable": json.RawMessage(c)})
			p.want(a.status == 400 && a.code() == "validation_error", "configurable %s: %s", c, a.brief())
		}
	}),

	must("options.configurable-kept", "runs.md §Validation and persistence", "configurable is persisted and shown", func(p *probe) {
		const c = `{"version":1,"run":{"recursionLimit":500,"runTimeoutMs":60000}}`
		a := p.ok(p.create(p.workflow(noop), object{"configurable": json.RawMessage(c)}), 201, "")
		got := p.snapshot(a.str("runId")).obj()["configurable"]
		p.want(same(got, []byte(c)), "configurable came back as %s", got)
	}),

	must("options.out-of-range", "runs.md §run section, §ai section", "a value out of its range is a validation_error at create", func(p *probe) {
		wf := p.workflow(noop)
		for _, c := range []string{
			`{"version":1,"run":{"runTimeoutMs":0}}`, `{"version":1,"run":{"runTimeoutMs":-5}}`, `{"version":1,"run":{"runTimeoutMs":"1000"}}`,
			`{"version":1,"ai":{"temperature":2.5}}`, `{"version":1,"ai":{"temperature":-1}}`, `{"version":1,"ai":{"reasoningVerbosity":"loud"}}`,
		} {
			a := p.create(wf, object{"configurable": json.RawMessage(c)})
			p.want(a.status == 400 && a.code() == "validation_error", "configurable %s: %s", c, a.brief())
		}
	}),

	must("options.recursion-clamped", "runs.md §run section", "a recursionLimit over the host's is lowered, and not refused", func(p *probe) {
		var most int64
		if !p.s.facet(&most, "limits", "maxNodeExecutions") {
			p.inapplicable("discovery advertises no maxNodeExecutions")
		}
		c := fmt.Sprintf(`{"version":1,"run":{"recursionLimit":%d}}`, most+1)
		a := p.create(p.workflow(noop), object{"configurable": json.RawMessage(c)})
		p.want(a.status == 201, "recursionLimit %d: %s", most+1, a.brief())
	}).gated("limits"),

	must("options.run-timeout", "runs.md §run section", "a run past its runTimeoutMs breaches the cap and fails with run_timeout", func(p *probe) {
		const c = `{"version":1,"run":{"runTimeoutMs":200}}`
		id := p.start(delay, object{"inputs": object{"delayMs": 20_000}, "configurable": json.RawMessage(c)})
		a := p.becomes(id, "failed")
		p.want(text(member(a.body, "error", "code")) == "run_timeout", "the run failed with %s", member(a.body, "error"))
		e, ok := find(p.log(id), "cap.breached")
		p.want(ok, "the log has no cap.breached")
		p.want(text(e.field("kind")) == "run-duration", "cap.breached has the kind %s", e.field("kind"))
	}),

	must("options.provider", "runs.md §ai section", "a provider that is not advertised is a validation_error", func(p *probe) {
		const c = `{"version":1,"ai":{"provider":"conformance-no-such-provider"}}`
		p.refused(p.create(p.workflow(noop), object{"configurable": json.RawMessage(c)}), 400, "validation_error")
	}),

	must("options.credential", "runs.md §ai section", "a credentialRef for a provider that takes none is credential_forbidden", func(p *probe) {
		const c = `{"version":1,"ai":{"credentialRef":"conformance-no-such-credential"}}`
		p.refused(p.create(p.workflow(noop), object{"configurable": json.RawMessage(c)}), 403, "credential_forbidden")
	}),

	must("options.mock-provider", "runs.md §ai section", "a mock provider is refused on a production credential", func(p *probe) {
		if p.s.facet(new(any), "testing", "mockProviders") {
			p.inapplicable("discovery advertises mock providers, and the key may be a test key")
		}
		const c = `{"version":1,"ai":{"mockProvider":{"id":"conformance"}}}`
		a := p.create(p.workflow(noop), object{"configurable": json.RawMessage(c)})
		p.refused(a, 403, "mock_provider_forbidden")
	}),
}

// nonce is a text nobody has used before.
func nonce() string { return strings.ToLower(rand.Text()) }

// childOf finds the first run id among node states, whose shape is the host's.
func childOf(states json.RawMessage) string {
	var v any
	_ = json.Unmarshal(states, &v)
	return childIn(v)
}

func childIn(v any) string {
	switch x := v.(type) {
	case map[string]any:
		for k, inner := range x {
			if s, ok := inner.(string); ok && (k == "runId" || k == "childRunId") && boundID.MatchString(s) {
				return s
			}
			if id := childIn(inner); id != "" {
				return id
			}
		}
	case []any:
		for _, inner := range x {
			if id := childIn(inner); id != "" {
				return id
			}
		}
	}
	return ""
}
