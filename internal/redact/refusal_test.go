package redact_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/redact"
)

// foreignKeys have the forms of what others hand out. They are put together here so
// that no text of this repository looks like one.
func foreignKeys() []string {
	tail := strings.Repeat("NotAKey0", 3)
	upper := strings.Repeat("NOTAKEY0", 2)
	return []string{
		"ey" + "J0." + tail, // too short to be one: see below
		"ey" + "J" + tail + "." + tail + "." + tail,
		"sk" + "-" + tail, "sk" + "-ant-" + tail, "AI" + "za" + tail, "gh" + "p_" + tail, "xo" + "xb-" + tail, "AK" + "IA" + upper,
	}
}

func TestRefusal(t *testing.T) {
	r := knowing(secret)
	for i, key := range foreignKeys() {
		said := "no workflow nonexistent-" + key + " here"
		if i == 0 {
			if got, _ := r.Refusal("acme", said, nil); got != said {
				t.Errorf("an innocent word is hidden: %q", got)
			}
			continue
		}
		details := map[string]any{"workflowId": "nonexistent-" + key, "deep": []any{map[string]any{key: 7}}}
		msg, d := r.Refusal("acme", said, details)
		if want := "no workflow nonexistent-" + redact.Masked + " here"; msg != want {
			t.Errorf("%q", msg)
		}
		if d["workflowId"] != "nonexistent-"+redact.Masked {
			t.Errorf("%v", d)
		}
		if _, ok := d["deep"].([]any)[0].(map[string]any)[redact.Masked]; !ok {
			t.Errorf("%v", d)
		}
		if got := redact.Scrub(said); got != msg {
			t.Errorf("a line of the log says %q", got)
		}
		if got := r.Text("acme", said); got != said {
			t.Errorf("data is changed: %q", got)
		}
	}
	plain := map[string]any{"field": "inputs.n", "limit": 3}
	msg, d := r.Refusal("acme", "task-force, desk-bound-and-well-meaning people: "+secret, plain)
	if msg != "task-force, desk-bound-and-well-meaning people: [REDACTED:c0]" || !reflect.DeepEqual(d, plain) {
		t.Errorf("%q %v", msg, d)
	}
	if _, d := r.Refusal("acme", "", map[string]any{"f": func() {}}); d["omitted"] == nil {
		t.Errorf("%v", d)
	}
	var none *redact.Redactor
	if msg, _ := none.Refusal("acme", foreignKeys()[1], nil); msg != redact.Masked {
		t.Errorf("%q", msg)
	}
}

func TestKeysJSON(t *testing.T) {
	const plain = `{"a":"task-force, risk-averse, right: \u00e9", "b" : [1.50,"sk-short"]}`
	if got := string(redact.KeysJSON([]byte(plain))); got != plain {
		t.Errorf("%s", got)
	}
	for _, key := range foreignKeys()[1:] {
		in := `{"task-1":"x \n` + key + `", "b" : [1.50,"(` + key + `)"]}`
		want := `{"task-1":"x \n[hidden]", "b" : [1.50,"([hidden])"]}`
		if got := string(redact.KeysJSON([]byte(in))); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
