package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/schema"
	"pgregory.net/rapid"
)

// candidate draws strings that are ids, nearly ids, or neither: segments of
// lengths about the bounds, joined as an id's are, and pieces joined anyhow.
func candidate() *rapid.Generator[string] {
	segment := rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{0, 1, 15, 16, 20, 127, 128, 129}).Draw(t, "length")
		return rapid.StringOfN(rapid.SampledFrom([]rune("aZ09._~-")), n, n, -1).Draw(t, "segment")
	})
	joined := rapid.Custom(func(t *rapid.T) string {
		prefix := rapid.SampledFrom([]string{"", "", "anon:", "anon", "x:"}).Draw(t, "prefix")
		return prefix + segment.Draw(t, "tenant") + "/" + segment.Draw(t, "opaque")
	})
	typeID := rapid.StringMatching(`[a-zA-Z0-9_]{0,2}[a-z0-9_-]{0,4}(\.[a-zA-Z][a-z0-9A-Z_-]{0,3}){0,3}`)
	piece := rapid.OneOf(segment, typeID, rapid.SampledFrom([]string{
		"", "/", "anon:", ":", "%2F", "~2F", " ", "\n", "é", "core.delay", "core.", "a.b",
	}))
	anyhow := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "")
	})
	return rapid.OneOf(joined, segment, typeID, anyhow)
}

func TestIDGrammarsAgreeWithTheHost(t *testing.T) {
	bound := func(s string) bool { _, err := ids.ParseRun(s); return err == nil }
	kinds := map[string]func(string) bool{
		"opaque": ids.ValidOpaque, "eventId": ids.ValidOpaque, "tenantId": ids.ValidTenant,
		"runId": bound, "interruptId": bound, "subscriptionId": bound, "deliveryId": bound, "effectId": bound,
		"nodeId": ids.ValidAuthored, "workflowId": ids.ValidAuthored, "agentId": ids.ValidAuthored,
		"typeId": ids.ValidTypeID,
	}
	accepted := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, s := range rapid.SliceOfN(candidate(), 20, 20).Draw(t, "ids") {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			for kind, valid := range kinds {
				got, want := schema.ValidateDef("ids", kind, text) == nil, valid(s)
				if got != want {
					t.Fatalf("%s %q: schema says %v, host says %v", kind, s, got, want)
				}
				if got {
					accepted[kind]++
				}
			}
		}
	})
	for kind := range kinds {
		if accepted[kind] == 0 {
			t.Errorf("no id of kind %s was drawn", kind)
		}
	}
}

func TestIDLengths(t *testing.T) {
	of := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		kind, id string
		ok       bool
	}{
		{"typeId", "a." + of(254), true}, {"typeId", "a." + of(255), false},
		{"runId", of(128) + "/" + of(128), true}, {"runId", of(129) + "/" + of(128), false},
		{"runId", "a/" + of(16), true}, {"runId", "a/" + of(15), false},
		{"nodeId", of(128), true}, {"nodeId", of(129), false}, {"nodeId", "", false},
		{"subjectId", of(256), true}, {"subjectId", of(257), false},
		{"traceId", strings.Repeat("0f", 16), true}, {"traceId", strings.Repeat("0F", 16), false},
		{"spanId", strings.Repeat("0f", 8), true}, {"spanId", strings.Repeat("0f", 9), false},
		{"keyId", "", false}, {"workspaceId", "anon:w", false}, {"tenantId", "anon:w", true},
	} {
		if err := schema.ValidateDef("ids", c.kind, []byte(`"`+c.id+`"`)); (err == nil) != c.ok {
			t.Errorf("%s of %d characters: %v", c.kind, len(c.id), err)
		}
	}
}

// A path carries the projection, which has a grammar of its own.
func TestProjectionsAreValid(t *testing.T) {
	tenant := rapid.StringMatching(`(anon:)?[A-Za-z0-9._~-]{1,20}`)
	opaque := rapid.StringMatching(`[A-Za-z0-9._~-]{16,20}`)
	rapid.Check(t, func(t *rapid.T) {
		r := ids.Run{Tenant: tenant.Draw(t, "tenant"), Opaque: opaque.Draw(t, "opaque")}
		for text, want := range map[string]bool{r.Segment(): true, r.String(): false, r.Opaque + "~2": false} {
			if got := schema.ValidateDef("ids", "projected", []byte(`"`+text+`"`)) == nil; got != want {
				t.Fatalf("%s: %v", text, got)
			}
		}
	})
}

func TestMintedIDsAreValid(t *testing.T) {
	var m ids.Minter
	at := time.UnixMilli(1_760_000_000_000)
	r := ids.Run{Tenant: "anon:acme", Opaque: m.Next(at)}
	for kind, id := range map[string]string{
		"runId": r.String(), "interruptId": ids.Interrupt(r, "n1", 0, 0).String(),
		"eventId": ids.Event(r, 1<<40), "opaque": ids.Derive(at, "a", "b"),
	} {
		if err := schema.ValidateDef("ids", kind, []byte(`"`+id+`"`)); err != nil {
			t.Errorf("%s %s: %v", kind, id, err)
		}
	}
}

// The pattern spells white space out, because the engines that will read it
// disagree about what \s covers.
func TestSubjectIDRefusesEveryWhiteSpace(t *testing.T) {
	for _, r := range " \t\n\v\f\r/\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff" {
		text, _ := json.Marshal("a" + string(r) + "b")
		if schema.ValidateDef("ids", "subjectId", text) == nil {
			t.Errorf("subjectId accepts %q", r)
		}
	}
	for _, s := range []string{"auth0|5f7c", "ü@example", "a:b"} {
		if err := schema.ValidateDef("ids", "subjectId", []byte(`"`+s+`"`)); err != nil {
			t.Errorf("%v", err)
		}
	}
}
