package schema

import (
	"errors"
	"strings"
	"testing"

	stdjson "encoding/json"
)

func TestDecodeIsStrict(t *testing.T) {
	for _, doc := range []string{
		``, `{`, `{"a":1,"a":2}`, `{} {}`, `{}x`, "\"\xff\"", `01`, `{"a":}`, `[1,]`,
		strings.Repeat("[", 300) + strings.Repeat("]", 300), `1e1001`, `1e-1001`, `1e99999999999999999999`, `NaN`,
	} {
		if v, err := decode([]byte(doc)); err == nil {
			t.Errorf("%.40s is read as %v", doc, v)
		}
	}
}

func TestDecodeKeepsNumbers(t *testing.T) {
	const digits = "123456789012345678901234567890.000000000000000000001"
	v, err := decode([]byte(`{"n":[` + digits + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.(map[string]any)["n"].([]any)[0]; got != stdjson.Number(digits) {
		t.Errorf("got %v", got)
	}
	// 2^53 and its neighbour differ, though as floats they would not.
	if Validate("run-list-response", []byte(`{"runs":[]}`)) != nil {
		t.Error("run-list-response")
	}
	if ValidateDef("capabilities", "limits", []byte(`{"status":"stable","since":"2.0","witness":"claims-check",`+
		`"clarificationRounds":9007199254740993.5,"schemaRounds":1,"envelopesPerTurn":1}`)) == nil {
		t.Error("a fraction beyond a float's precision passes as an integer")
	}
}

func TestInvalidPointsAtTheFault(t *testing.T) {
	cases := []struct{ name, doc, field, reason string }{
		{"cancel-request", `{"reason":1}`, "reason", "got number, want string"},
		{"cancel-request", `{"why":1,"when":2}`, "when", "unknown member"},
		{"cancel-request", `[]`, "", "got array, want object"},
		{"cancel-request", `{`, "", "not acceptable JSON: "},
		{"create-run-request", `{}`, "workflowId", "required"},
		{"create-run-request", `{"workflowId":"w","configurable":{"version":1,"ai":{"temperature":3}}}`, "configurable.ai.temperature", "maximum"},
		{"create-run-request", `{"workflowId":"w","tags":["a",5]}`, "tags[1]", "got number"},
		{"create-run-request", `{"workflowId":"w","tags":5}`, "tags", "got number"},
		{"create-run-request", `{"workflowId":"w","size":5}`, "size", "unknown member"},
		{"subject", `{"issuer":"i","subjectId":"s","tenant":"acme","lane":"api-key","kind":"robot"}`, "kind", "one of"},
	}
	for _, c := range cases {
		var inv *Invalid
		for range 10 {
			err := Validate(c.name, []byte(c.doc))
			if !errors.As(err, &inv) {
				t.Fatalf("%s %s: err = %v", c.name, c.doc, err)
			}
			if inv.Field != c.field || !strings.Contains(inv.Reason, c.reason) {
				t.Errorf("%s %s: %q: %s", c.name, c.doc, inv.Field, inv.Reason)
			}
		}
		if inv.Unwrap() == nil || !strings.HasPrefix(inv.Error(), c.name+": ") {
			t.Errorf("%v", inv)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{"eventId":"0123456789abcdef","runId":"a/0123456789abcdef","type":"run.started","payload":{},"timestamp":"2026-01-02T03:04:05Z","sequence":1e3,"schemaVersion":1}`))
	f.Add([]byte(`{"kind":"custom","key":"k","data":{"customKind":"x"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, name := range []string{"run-event", "suspend-request", "workflow-definition", "create-run-request", "capabilities"} {
			err := Validate(name, doc)
			var inv *Invalid
			if err != nil && !errors.As(err, &inv) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
