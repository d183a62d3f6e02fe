package v1

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestConfigurable(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                   `{"version":1}`,
		`{"recursionLimit":3}`: `{"run":{"recursionLimit":3},"version":1}`,
		`{"model":"m","ai.provider":"p","temperature":1e0}`: `{"ai":{"model":"m","provider":"p","temperature":1e0},"version":1}`,
		`{"ai.model":"m"}`:                           `{"ai":{"model":"m"},"version":1}`,
		`{"reasoningVerbosity":"off"}`:               `{"ai":{"reasoningVerbosity":"none"},"version":1}`,
		`{"budget":{"usd":1},"x.y":[1],"version":7}`: `{"budget":{"usd":1},"extensions":{"v1":{"version":7,"x.y":[1]}},"version":1}`,
		`{"run":{"recursionLimit":3}}`:               `{"extensions":{"v1":{"run":{"recursionLimit":3}}},"version":1}`,
	} {
		got, err := nested(jsontext.Value(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	if v, err := nested(jsontext.Value(`{"model":"m","ai.model":"m"}`)); err != nil || string(v) != `{"ai":{"model":"m"},"version":1}` {
		t.Errorf("one model under both names: %s, %v", v, err)
	}
	// Two models under the two names of one are none: which of them counted would be chance.
	for _, in := range []string{`[]`, `"x"`, `1`, `null`, `{"model":"a","ai.model":"b"}`, `{"ai.model":"a","model":null}`} {
		if v, err := nested(jsontext.Value(in)); err == nil {
			t.Errorf("%s became %s", in, v)
		}
	}
	if v, err := nested(nil); v != nil || err != nil || flat(nil) != nil {
		t.Errorf("nothing became %s, %v", v, err)
	}
}

// What a client of v1 sent is what it reads back.
func TestConfigurableThereAndBack(t *testing.T) {
	keys := []string{"own", "own.key", "version", "run", "extensions"}
	for k := range places {
		if k != "ai.model" { // it is model under another name
			keys = append(keys, k)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]any{}
		for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID).Draw(t, "keys") {
			in[k] = rapid.SampledFrom([]any{1.0, "x", "off", true, []any{"a"}, map[string]any{"b": nil}}).Draw(t, k)
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		there, err := nested(b)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(flat(there), &out); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(in, out) {
			t.Errorf("%s became %v by way of %s", b, out, there)
		}
	})
}
