package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/node"
)

func takes(t *testing.T, r node.Result, port string) {
	t.Helper()
	if !reflect.DeepEqual(r.Ports(), []string{port}) {
		t.Errorf("took %v, want %s", r.Ports(), port)
	}
}

func TestIf(t *testing.T) {
	takes(t, completes(t, "core.flow.if", in(`{"condition":"= true"}`), `{"result":true}`), "true")
	takes(t, completes(t, "core.flow.if", in(`{"condition":"= false"}`), `{"result":false}`), "false")
	takes(t, completes(t, "core.flow.if", in(`{"condition":"= true"}`, "condition", "false"), `{"result":false}`), "false")
	for value, field := range map[string]string{
		"= 1": "config.condition", `= "true"`: "config.condition", "nothing": "config.condition", "fail": "config.condition",
	} {
		config, _ := json.Marshal(map[string]string{"condition": value})
		badConfig(t, "core.flow.if", in(string(config)), field)
	}
	badConfig(t, "core.flow.if", in(`{}`), "condition")
	// Data that looks like an expression is data.
	badConfig(t, "core.flow.if", in(`{"condition":"= true"}`, "condition", `"= true"`), "inputs.condition")
	if e := fails(t, "core.flow.if", in(`{"condition":"fail hard"}`), "service_unavailable", "later"); !e.Retryable {
		t.Error("the failure of the evaluation was changed")
	}
	accepted(t, "core.flow.if", `{"condition":"= true"}`)
	accepted(t, "core.flow.if", `{"condition":"is input {}"}`)
	accepted(t, "core.flow.if", `{}`)
	refused(t, "core.flow.if", `{"condition":"((("}`, "config.condition")
	refused(t, "core.flow.if", `{"condition":true}`, "config.condition")
}

func TestExpressionsSeeThePorts(t *testing.T) {
	completes(t, "core.flow.transform", in(`{"expression":"input"}`, "b", exact, "a", "1"), `{"output":{"a":1,"b":`+exact+`}}`)
	i := in(`{"expression":"input"}`)
	i.Services.Eval = nil
	fails(t, "core.flow.transform", i, node.CodeInternal, "expressions")
}

func TestSwitch(t *testing.T) {
	const config = `{"expression":"= 12345678901234567890","default":"other","cases":[
		{"port":"small","equals":12345678901234567891},
		{"port":"null","equals":null},
		{"port":"big","equals":1.2345678901234567890e19},
		{"port":"word","when":"is value \"é\""}]}`
	takes(t, completes(t, "core.flow.switch", in(config), `{"port":"big","value":12345678901234567890}`), "big")
	takes(t, completes(t, "core.flow.switch", in(config, "value", `"é"`), `{"port":"word","value":"é"}`), "word")
	takes(t, completes(t, "core.flow.switch", in(config, "value", `null`), `{"port":"null","value":null}`), "null")
	takes(t, completes(t, "core.flow.switch", in(config, "value", `{"a":1}`), `{"port":"other","value":{"a":1}}`), "other")
	takes(t, completes(t, "core.flow.switch", in(`{"cases":[{"port":"x","when":"= false"}]}`), `{"port":"default","value":null}`), "default")
	badConfig(t, "core.flow.switch", in(`{"cases":[{"port":"x","when":"= 1"}]}`), "config.cases[0].when")
	badConfig(t, "core.flow.switch", in(`{"expression":"fail","cases":[{"port":"x","equals":1}]}`), "config.expression")
	accepted(t, "core.flow.switch", config)
	many := `{"cases":[` + strings.TrimSuffix(strings.Repeat(`{"port":"a","equals":1},`, 101), ",") + `]}`
	for c, field := range map[string]string{
		`{}`:                       "cases",
		many:                       "cases",
		`{"cases":[{"equals":1}]}`: "cases[0].port",
		`{"cases":[{"port":"a"}]}`: "cases[0]",
		`{"cases":[{"port":"a","equals":1,"when":"= true"}]}`: "cases[0]",
		`{"cases":[{"port":7,"equals":1}]}`:                   "config.cases.port",
	} {
		refused(t, "core.flow.switch", c, field)
		badConfig(t, "core.flow.switch", in(c), field)
	}
	refused(t, "core.flow.switch", `{"cases":[{"port":"a","when":"((("}]}`, "config.cases[0].when")
	refused(t, "core.flow.switch", `{"expression":"(((","cases":[{"port":"a","equals":1}]}`, "config.expression")
}

func TestFilter(t *testing.T) {
	completes(t, "core.flow.filter", in(`{"items":[1,12345678901234567890,1.0],"where":"is item 12345678901234567890"}`),
		`{"count":1,"items":[12345678901234567890]}`)
	completes(t, "core.flow.filter", in(`{"items":"= [\"a\",\"b\"]","where":"is index 1"}`), `{"count":1,"items":["b"]}`)
	completes(t, "core.flow.filter", in(`{"items":[1],"where":"= true"}`, "items", `[`+exact+`]`), `{"count":1,"items":[`+exact+`]}`)
	completes(t, "core.flow.filter", in(`{"items":[],"where":"fail"}`), `{"count":0,"items":[]}`)
	e := fails(t, "core.flow.filter", in(`{"items":[1,2],"where":"item"}`), node.CodeConfig, "config.where")
	if e.Details["index"] != 0 {
		t.Error(e.Details)
	}
	badConfig(t, "core.flow.filter", in(`{"where":"= true"}`), "items")
	badConfig(t, "core.flow.filter", in(`{"items":"= 1","where":"= true"}`), "config.items")
	badConfig(t, "core.flow.filter", in(`{"items":{},"where":"= true"}`), "config.items")
	badConfig(t, "core.flow.filter", in(`{"items":"fail","where":"= true"}`), "config.items")
	badConfig(t, "core.flow.filter", in(`{"where":"= true"}`, "items", "null"), "inputs.items")
	badConfig(t, "core.flow.filter", in(`{"where":"= true"}`, "items", `"= [1]"`), "inputs.items")
	badConfig(t, "core.flow.filter", in(`{"items":[]}`), "where")
	accepted(t, "core.flow.filter", `{"where":"is item 1"}`)
	refused(t, "core.flow.filter", `{"where":"(((","items":[]}`, "config.where")
	refused(t, "core.flow.filter", `{"where":"= true","items":"((("}`, "config.items")
	refused(t, "core.flow.filter", `{"where":"= true","items":7}`, "config.items")
	refused(t, "core.flow.filter", `{"items":[]}`, "config.where")
}

func TestListsAreBounded(t *testing.T) {
	long := "[" + strings.Repeat("1,", maxItems) + "1]"
	for _, id := range []string{"core.flow.filter", "core.flow.map"} {
		badConfig(t, id, in(`{"where":"= true","expression":"item"}`, "items", long), "inputs.items")
	}
	full := "[" + strings.Repeat("1,", maxItems-1) + "1]"
	r, err := run(t, "core.flow.filter", in(`{"where":"= true"}`, "items", full))
	if err != nil || string(r.Outputs()["count"]) != "10000" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, id := range []string{"core.flow.filter", "core.flow.map"} {
		_, err := typeOf(t, id).Run(ctx, in(`{"where":"= true","expression":"item"}`, "items", full))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s does not stop: %v", id, err)
		}
	}
}

func TestMerge(t *testing.T) {
	ports := []string{"b", `{"x":2,"z":12345678901234567890}`, "a", `{"x":1,"y":{"k":1}}`, "c", `null`}
	completes(t, "core.flow.merge", in(``, ports...), `{"output":{"x":2,"y":{"k":1},"z":12345678901234567890}}`)
	completes(t, "core.flow.merge", in(`{"mode":"array"}`, ports...),
		`{"output":[{"x":1,"y":{"k":1}},{"x":2,"z":12345678901234567890},null]}`)
	completes(t, "core.flow.merge", in(`{"mode":"first"}`, "b", "2", "a", "null", "c", "3"), `{"output":2}`)
	completes(t, "core.flow.merge", in(`{"mode":"first"}`), `{"output":null}`)
	completes(t, "core.flow.merge", in(`{"mode":"object"}`), `{"output":{}}`)
	completes(t, "core.flow.merge", in(`{"mode":"array"}`), `{"output":[]}`)
	badConfig(t, "core.flow.merge", in(`{}`, "a", "[1]"), "inputs.a")
	badConfig(t, "core.flow.merge", in(`{"mode":"deep"}`), "mode")
	refused(t, "core.flow.merge", `{"mode":"deep"}`, "mode")
	refused(t, "core.flow.merge", `{"mode":1}`, "config.mode")
	// The mode is the author's, whatever a port is called.
	completes(t, "core.flow.merge", in(`{"mode":"array"}`, "mode", `"first"`), `{"output":["first"]}`)
}

func TestTransform(t *testing.T) {
	completes(t, "core.flow.transform", in(`{"expression":"= `+strings.ReplaceAll(`[1e400]`, `"`, `\"`)+`"}`), `{"output":[1e400]}`)
	completes(t, "core.flow.transform", in(`{"expression":"nothing"}`), `{"output":null}`)
	completes(t, "core.flow.transform", in(`{"fields":{"größe":"= 12345678901234567890","b":"input"}}`, "p", "1"),
		`{"b":{"p":1},"größe":12345678901234567890}`)
	for config, field := range map[string]string{
		`{}`: "config",
		`{"expression":"= 1","fields":{"a":"= 1"}}`: "config",
		`{"fields":{}}`:         "fields",
		`{"fields":{"":"= 1"}}`: "fields",
		`{"fields":{"a":1}}`:    "config.fields",
		`{"expression":[]}`:     "config.expression",
	} {
		badConfig(t, "core.flow.transform", in(config), field)
		refused(t, "core.flow.transform", config, field)
	}
	badConfig(t, "core.flow.transform", in(`{"fields":{"a":"fail"}}`), "config.fields.a")
	refused(t, "core.flow.transform", `{"fields":{"a":"((("}}`, "config.fields.a")
	refused(t, "core.flow.transform", `{"expression":"((("}`, "config.expression")
	accepted(t, "core.flow.transform", `{"fields":{"a":"input"}}`)
	accepted(t, "core.flow.transform", `{"expression":"input"}`)
}

func TestSet(t *testing.T) {
	i := in(`{"variables":{"b":"= 1e400","a":"= {\"k\":12345678901234567890}"}}`)
	completes(t, "core.flow.set", i, `{"a":{"k":12345678901234567890},"b":1e400}`)
	writes, _ := i.Recorded()
	if len(writes) != 2 || writes[0].Variable != "a" || writes[1].Variable != "b" || string(writes[1].Value) != "1e400" {
		t.Errorf("%+v", writes)
	}
	i = in(`{"variables":{"a":"= 1","b":"fail"}}`)
	badConfig(t, "core.flow.set", i, "config.variables.b")
	if writes, _ := i.Recorded(); len(writes) != 0 {
		t.Error("a variable was set although another failed")
	}
	many := map[string]map[string]string{"variables": {}}
	for k := range maxFields + 1 {
		many["variables"][fmt.Sprint(k)] = "= 1"
	}
	tooMany, _ := json.Marshal(many)
	for config, field := range map[string]string{
		`{}`: "variables", `{"variables":{}}`: "variables", `{"variables":[]}`: "config.variables",
		string(tooMany): "variables",
	} {
		badConfig(t, "core.flow.set", in(config), field)
		refused(t, "core.flow.set", config, field)
	}
	refused(t, "core.flow.set", `{"variables":{"a":"((("}}`, "config.variables.a")
	refused(t, "core.flow.set", `{"variables":{"a":""}}`, "config.variables.a")
}

func TestWait(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		in   *node.Input
		want time.Time
	}{
		{in(`{"until":"2031-05-01T08:00:00Z"}`), at("2031-05-01T08:00:00Z")},
		{in(`{"until":"2031-05-01T08:00:00+02:00"}`), at("2031-05-01T06:00:00Z")},
		{in(`{"until":"= \"2031-05-01T08:00:00Z\""}`), at("2031-05-01T08:00:00Z")},
		{in(`{"until":"= 1950000000000"}`), time.UnixMilli(1950000000000)},
		{in(`{"durationMs":90}`, "until", `"2031-05-01T08:00:00Z"`), at("2031-05-01T08:00:00Z")},
		{in(`{"until":"2031-05-01T08:00:00Z"}`, "durationMs", `5`), now.Add(5 * time.Millisecond)},
		{in(`{}`, "duration", `"PT2S"`), now.Add(2 * time.Second)},
		{in(`{"durationMs":90}`), now.Add(90 * time.Millisecond)},
		{in(`{"duration":"PT1H30M"}`), now.Add(90 * time.Minute)},
		{in(`{"duration":"P60D"}`), now.AddDate(0, 0, 60)},
	} {
		r, err := run(t, "core.flow.wait", c.in)
		if err != nil || r.Kind() != node.Sleeping || !r.Until().Equal(c.want) {
			t.Errorf("%s %v: %v until %v, %v", c.in.Config, c.in.Inputs, r.Kind(), r.Until(), err)
		}
	}
	const woken = `{"wokenAt":"2031-03-30T01:02:03.456Z"}`
	completes(t, "core.flow.wait", in(`{"until":"2020-01-01T00:00:00Z"}`), woken)
	completes(t, "core.flow.wait", in(`{"durationMs":0}`), woken)
	later := in(`{"until":"fail"}`)
	later.Wake = &node.Wake{Timer: true}
	completes(t, "core.flow.wait", later, woken)
	for config, field := range map[string]string{
		`{}`:                                "until",
		`{"until":"= true"}`:                "config.until",
		`{"until":"= \"tomorrow\""}`:        "config.until",
		`{"until":"= -1"}`:                  "config.until",
		`{"until":"fail"}`:                  "config.until",
		`{"until":"2041-04-01T00:00:00Z"}`:  "until",
		`{"duration":"P1H"}`:                "duration",
		`{"durationMs":1e15}`:               "durationMs",
		`{"duration":"P1D","durationMs":1}`: "until",
	} {
		badConfig(t, "core.flow.wait", in(config), field)
	}
	badConfig(t, "core.flow.wait", in(`{}`, "until", `"= 1"`), "inputs.until")
	badConfig(t, "core.flow.wait", in(`{}`, "duration", `7`), "inputs.duration")
	for _, config := range []string{`{}`, `{"until":"2031-05-01T08:00:00Z"}`, `{"until":"= 1"}`, `{"duration":"P1D"}`, `{"durationMs":5}`} {
		accepted(t, "core.flow.wait", config)
	}
	refused(t, "core.flow.wait", `{"until":"2031-13-01T08:00:00Z"}`, "config.until")
	refused(t, "core.flow.wait", `{"duration":"1D"}`, "duration")
	refused(t, "core.flow.wait", `{"durationMs":-1}`, "durationMs")
	refused(t, "core.flow.wait", `{"duration":"P1D","durationMs":1}`, "config")
}

func TestPeriod(t *testing.T) {
	from := time.Date(2031, 1, 31, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"PT1H30M":        "2031-01-31T11:30:00Z",
		"P60D":           "2031-04-01T10:00:00Z",
		"P2W":            "2031-02-14T10:00:00Z",
		"P1M":            "2031-02-28T10:00:00Z",
		"P13M":           "2032-02-29T10:00:00Z",
		"P1Y2M3DT4H5M6S": "2032-04-03T14:05:06Z",
		"PT0S":           "2031-01-31T10:00:00Z",
		"PT1.5S":         "2031-01-31T10:00:01.5Z",
		"PT0,000000001S": "2031-01-31T10:00:00.000000001Z",
		"PT36H":          "2031-02-01T22:00:00Z",
		"P10Y":           "2041-01-31T10:00:00Z",
	} {
		p, ok := parsePeriod(text)
		if got := p.after(from).Format(time.RFC3339Nano); !ok || got != want {
			t.Errorf("%s: %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "P", "PT", "P1", "1D", "PD", "P1H", "PT1D", "P1DT", "P1D1Y", "P1Y1Y", "PT1M1H", "P-1D", "P1.5D", "PT1.5H",
		"PT1.S", "PT.5S", "PT1.1234567890S", "P11Y", "P121M", "P3661D", "PT999999999H", "P9999999999D", "P1D ", " P1D", "p1d",
		"PT1HPT1H", "P１D", "PT1e3S", "P1W2", strings.Repeat("P1D", 50000),
	} {
		if p, ok := parsePeriod(text); ok {
			t.Errorf("%.20s is %+v", text, p)
		}
	}
}

func FuzzPeriod(f *testing.F) {
	for _, s := range []string{"PT1H30M", "P60D", "P1Y2M3W4DT5H6M7.8S", "P", "PT1,5S"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := parsePeriod(s)
		if end := p.after(now); ok && (end.Before(now) || end.After(now.AddDate(31, 0, 0))) {
			t.Errorf("%q ends at %v", s, end)
		}
	})
}
