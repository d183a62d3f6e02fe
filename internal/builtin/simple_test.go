package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/node"
)

// exact is a value that only survives if nobody decodes it on the way.
const exact = `{"z":12345678901234567890.12345678901234567890,"a":1E400,"u":"<\u00e9𝄐&>","n":null}`

func TestNoop(t *testing.T) {
	for _, config := range []string{``, `{}`, `{"nondeterministic":true}`} {
		r := completes(t, "core.noop", in(config, "a", "1"), `{}`)
		if r.Outputs() != nil {
			t.Error(r.Outputs())
		}
	}
}

func TestIdentity(t *testing.T) {
	completes(t, "core.identity", in(``), `{}`)
	completes(t, "core.identity", in(`{"memoryAction":"write-then-read"}`, "payload", exact, "b", ``),
		`{"b":null,"payload":`+exact+`}`)
	badConfig(t, "core.identity", in(`{"emitDuplicateMessageId":"yes"}`), "config.emitDuplicateMessageId")
}

func TestIdentityWritesAMessageTwice(t *testing.T) {
	i := in(`{"emitDuplicateMessageId":true}`)
	completes(t, "core.identity", i, `{}`)
	writes, _ := i.Recorded()
	if len(writes) != 2 || string(writes[0].Value) != string(writes[1].Value) {
		t.Fatalf("%v", writes)
	}
	var m struct{ MessageID string }
	if err := json.Unmarshal(writes[0].Value, &m); err != nil || m.MessageID == "" {
		t.Error(err, m)
	}
	if w := writes[0]; w.Channel != "messages" || w.Reducer != "message" || w.Variable != "" {
		t.Errorf("%+v", w)
	}
	// A port of that name is data, not the hook.
	i = in(`{}`, "emitDuplicateMessageId", "true")
	completes(t, "core.identity", i, `{"emitDuplicateMessageId":true}`)
	if writes, _ := i.Recorded(); len(writes) != 0 {
		t.Error(writes)
	}
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		in   *node.Input
		want time.Duration
	}{
		{in(`{"delayMs":1000}`), time.Second},
		{in(`{"ms":300}`), 300 * time.Millisecond},
		{in(`{"durationMs":30000}`), 30 * time.Second},
		{in(`{"delayMs":1,"ms":2,"durationMs":3}`), time.Millisecond},
		{in(`{"ms":2}`, "delayMs", "5"), 5 * time.Millisecond},
		{in(`{"delayMs":1}`, "delayMs", "1e3"), time.Second},
		{in(`{"delayMs":7}`, "delayMs", "null"), 7 * time.Millisecond},
		{in(`{"delayMs":31536000000}`), 365 * 24 * time.Hour},
	} {
		r, err := run(t, "core.delay", c.in)
		if err != nil || r.Kind() != node.Sleeping || !r.Until().Equal(now.Add(c.want)) {
			t.Errorf("%s %v: %v until %v, %v", c.in.Config, c.in.Inputs, r.Kind(), r.Until(), err)
		}
	}
	completes(t, "core.delay", in(`{"delayMs":0}`), `{}`)
	woken := in(`{"delayMs":1000}`)
	woken.Wake = &node.Wake{Timer: true}
	if r := completes(t, "core.delay", woken, `{}`); r.Outputs() == nil {
		t.Error("no outputs at all")
	}
	for _, config := range []string{``, `{}`, `{"delayMs":-1}`, `{"delayMs":1.5}`, `{"delayMs":"10"}`,
		`{"delayMs":31536000001}`, `{"delayMs":1e999999999}`, `{"delayMs":[]}`} {
		badConfig(t, "core.delay", in(config), "delayMs")
	}
	badConfig(t, "core.delay", in(`{"ms":-1}`), "ms")
}

func TestFail(t *testing.T) {
	e := fails(t, "core.fail", in(``), "conformance_test_failure", "")
	if e.Retryable || e.Message == "" || e.Details != nil {
		t.Errorf("%+v", e)
	}
	e = fails(t, "core.fail", in(`{"code":"acme.broken","message":"Es ist kaputt 𝄐","details":`+exact+`,"retryable":true}`),
		"acme.broken", "kaputt 𝄐")
	if raw, _ := e.Details["z"].(json.RawMessage); !e.Retryable || string(raw) != "12345678901234567890.12345678901234567890" {
		t.Errorf("%+v", e)
	}
	fails(t, "core.fail", in(`{"message":"a"}`, "message", `"b"`), "conformance_test_failure", "b")
	fails(t, "core.fail", in(`{"message":"100% of %s"}`), "conformance_test_failure", "100% of %s")
	badConfig(t, "core.fail", in(`{"code":1}`), "config.code")
	badConfig(t, "core.fail", in(`{"details":[]}`), "config.details")
}

func TestRequiresMissing(t *testing.T) {
	e := fails(t, "conformance.requiresMissing", in(`{}`), "capability_not_provided", "conformance.never-provided")
	if e.Retryable {
		t.Error("it would be retried")
	}
	if got := fmt.Sprint(typeOf(t, "conformance.requiresMissing").Requires); got != "[conformance.never-provided]" {
		t.Error(got)
	}
}

func TestChannelWrite(t *testing.T) {
	for _, c := range []struct {
		in             *node.Input
		value, reducer string
	}{
		{in(`{"channelName":"events","value":"a","ttlMs":200}`), `"a"`, "append"},
		{in(`{"channelName":"events","reducer":"merge","value":` + exact + `}`), exact, "merge"},
		{in(`{"channelName":"events","value":1}`, "value", exact), exact, "append"},
		{in(`{"channelName":"events","value":null}`), `null`, "append"},
		{in(`{"channelName":"events","reducer":"vendor.acme.top","maxSize":3,"value":1}`), `1`, "vendor.acme.top"},
		{in(`{"channelName":"events","value":1}`, "channelName", `"elsewhere"`), `1`, "append"},
	} {
		completes(t, "core.channelWrite", c.in, `{}`)
		writes, _ := c.in.Recorded()
		if len(writes) != 1 || writes[0].Channel != "events" || writes[0].Reducer != c.reducer || string(writes[0].Value) != c.value {
			t.Errorf("%s: %+v", c.in.Config, writes)
		}
	}
	badConfig(t, "core.channelWrite", in(`{"channelName":"a"}`), "value")
	for config, field := range map[string]string{
		`{"value":1}`: "channelName",
		`{"channelName":"a","value":1,"reducer":"sum"}`:          "reducer",
		`{"channelName":"a","value":1,"reducer":"vendor"}`:       "reducer",
		`{"channelName":"a","value":1,"reducer":"vendor.acme."}`: "reducer",
		`{"channelName":"a","value":1,"ttlMs":0}`:                "ttlMs",
		`{"channelName":"a","value":1,"maxSize":1.5}`:            "maxSize",
		`{"channelName":"a","value":1,"ttlMs":1e3}`:              "ttlMs",
		`{"channelName":[],"value":1}`:                           "config.channelName",
	} {
		badConfig(t, "core.channelWrite", in(config), field)
		refused(t, "core.channelWrite", config, field)
	}
	accepted(t, "core.channelWrite", `{"channelName":"a"}`)
}

func TestBadConfigIsNoJSON(t *testing.T) {
	for _, nt := range All(Deps{}) {
		if nt.ID == "core.noop" || nt.ID == "conformance.requiresMissing" {
			continue
		}
		for _, config := range []string{`{`, `[]`, `"a"`, `{"a":` + strings.Repeat("[", 20000)} {
			if _, err := run(t, nt.ID, in(config)); err == nil {
				t.Errorf("%s ran with config %.20s", nt.ID, config)
			}
		}
	}
}
