package audit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
)

var update = flag.Bool("update", false, "write the golden chain: a host with the old form can read it no more")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func signer(t *testing.T, b byte) audit.Signer {
	t.Helper()
	s, err := audit.NewSigner(bytes.Repeat([]byte{b}, audit.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keysOf(t *testing.T, list ...audit.Signer) audit.Keys {
	t.Helper()
	k := audit.Keys{}
	for _, s := range list {
		if err := k.Add(s.Public()); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// chain makes entries of a chain, and checkpoints of every so many.
func chain(t *testing.T, name string, n, every int) (bodies [][]byte, points []audit.Checkpoint, end audit.Position) {
	t.Helper()
	s := signer(t, 7)
	var leaves []string
	for i := range n {
		body, next, err := audit.Place(name, end, audit.Fact{
			At: noon.Add(time.Duration(i) * time.Second), Actor: audit.Actor{Issuer: "urn:x", SubjectID: "ann", Tenant: name, Lane: "api-key", Kind: "user", Assurance: "bearer"},
			Action: "workflow.register", Outcome: audit.Done, Target: audit.Target{Type: "workflow", ID: fmt.Sprint("w", i)},
			Detail: map[string]string{"z": "ü", "a": "\u2028"},
		})
		if err != nil {
			t.Fatal(err)
		}
		bodies, end = append(bodies, body), next
		if leaves = append(leaves, next.Hash); len(leaves) == every {
			points = append(points, s.Seal(name, end.Sequence-int64(every), leaves, noon))
			leaves = nil
		}
	}
	return bodies, points, end
}

func walk(t *testing.T, bodies [][]byte, points []audit.Checkpoint, end audit.Position, anchored int64) *audit.Walker {
	t.Helper()
	w := audit.Walk("acme", audit.Position{}, keysOf(t, signer(t, 7)), points)
	for i, b := range bodies {
		if b != nil {
			w.Add(int64(i+1), b)
		}
	}
	w.Close(end, anchored)
	return w
}

// What can be done to a chain that is kept, and where it shows.
func TestTampering(t *testing.T) {
	whole, points, end := chain(t, "acme", 10, 4)
	if w := walk(t, whole, points, end, 8); !w.Valid() || w.End() != end {
		t.Fatalf("a good chain: %+v %v", w.Anomalies, w.BadCheckpoints)
	}
	edit := func(i int, from, to string) func([][]byte) [][]byte {
		return func(b [][]byte) [][]byte {
			b[i] = bytes.Replace(b[i], []byte(from), []byte(to), 1)
			return b
		}
	}
	for _, c := range []struct {
		name   string
		change func([][]byte) [][]byte
		odd    []int64 // sequences
		bad    []int64 // checkpoints
	}{
		{"edit", edit(1, `"w1"`, `"w9"`), []int64{3}, []int64{4}},
		{"edit of the last", edit(9, `"ann"`, `"bob"`), []int64{11}, nil},
		{"a space", edit(1, `"w1"`, ` "w1"`), []int64{2, 3}, []int64{4}},
		{"another chain's", edit(1, `"chain":"acme"`, `"chain":"evil"`), []int64{2, 3}, []int64{4}},
		{"delete", func(b [][]byte) [][]byte { b[1] = nil; return b }, []int64{2, 3}, []int64{4}},
		{"delete and close up", func(b [][]byte) [][]byte { return slices.Delete(b, 1, 2) }, []int64{2, 3, 4, 5, 6, 7, 8, 9, 10}, []int64{4, 8}},
		{"reorder", func(b [][]byte) [][]byte { b[1], b[2] = b[2], b[1]; return b }, []int64{2, 3, 4}, []int64{4}},
		{"truncate behind the last checkpoint", func(b [][]byte) [][]byte { return b[:9] }, []int64{10}, nil},
		{"truncate before it", func(b [][]byte) [][]byte { return b[:6] }, []int64{7}, []int64{8}},
		{"truncate all", func(b [][]byte) [][]byte { return nil }, []int64{1}, []int64{4, 8}},
		{"twice", func(b [][]byte) [][]byte { return slices.Insert(b, 9, b[9]) }, []int64{11, 12}, nil},
	} {
		w := walk(t, c.change(slices.Clone(whole)), points, end, 8)
		var odd []int64
		for _, a := range w.Anomalies {
			odd = append(odd, a.AtSeq)
		}
		if c.name == "delete and close up" { // whatever comes first counts
			if len(odd) == 0 || odd[0] != c.odd[0] || w.Valid() {
				t.Errorf("%s: odd at %v", c.name, odd)
			}
			continue
		}
		if !slices.Equal(odd, c.odd) || !slices.Equal(w.BadCheckpoints, c.bad) || w.Valid() {
			t.Errorf("%s: odd at %v, bad checkpoints %v; want %v, %v", c.name, odd, w.BadCheckpoints, c.odd, c.bad)
		}
	}
}

// Whoever can write entries, but not sign, can make the chain fit again; the
// checkpoints do not.
func TestRewrittenChain(t *testing.T) {
	_, points, _ := chain(t, "acme", 8, 4)
	var forged [][]byte
	var end audit.Position
	for range 8 {
		b, next, err := audit.Place("acme", end, audit.Fact{At: noon, Actor: audit.Actor{Kind: "host"}, Action: "nothing", Outcome: audit.Done})
		if err != nil {
			t.Fatal(err)
		}
		forged, end = append(forged, b), next
	}
	w := walk(t, forged, points, end, 8)
	if len(w.Anomalies) > 0 || !slices.Equal(w.BadCheckpoints, []int64{4, 8}) {
		t.Errorf("%v, %v", w.Anomalies, w.BadCheckpoints)
	}
	for name, change := range map[string]func([]audit.Checkpoint) []audit.Checkpoint{
		"no checkpoint":       func([]audit.Checkpoint) []audit.Checkpoint { return nil },
		"the first is gone":   func(p []audit.Checkpoint) []audit.Checkpoint { return p[1:] },
		"the last is gone":    func(p []audit.Checkpoint) []audit.Checkpoint { return p[:1] },
		"signed by another":   func(p []audit.Checkpoint) []audit.Checkpoint { p[0] = signer(t, 8).Again(p[0]); return p },
		"another's key id":    func(p []audit.Checkpoint) []audit.Checkpoint { p[0].KeyID = signer(t, 8).KeyID; return p },
		"no signature":        func(p []audit.Checkpoint) []audit.Checkpoint { p[0].Signature = ""; return p },
		"anchors fewer":       func(p []audit.Checkpoint) []audit.Checkpoint { p[0].From = 1; return p },
		"anchors another":     func(p []audit.Checkpoint) []audit.Checkpoint { p[0].AtSequence = 5; return p },
		"the root of another": func(p []audit.Checkpoint) []audit.Checkpoint { p[0].Root = p[1].Root; return p },
	} {
		bodies, points, end := chain(t, "acme", 8, 4)
		if w := walk(t, bodies, change(points), end, 8); w.Valid() || len(w.BadCheckpoints) == 0 {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}

// A tree of inner nodes has the root of the tree of leaves: the count tells.
func TestRootCountsLeaves(t *testing.T) {
	h := func(s string) string { return audit.Hash([]byte(s)) }
	a, b, c := h("a"), h("b"), h("c")
	if got, want := audit.Root([]string{a, b, c}), h(h(a+b)+c); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if audit.Root([]string{a}) != a || audit.Root([]string{h(a + b), c}) != audit.Root([]string{a, b, c}) {
		t.Error("the tree is another one")
	}
	in := []string{a, b, c}
	audit.Root(in)
	if !slices.Equal(in, []string{a, b, c}) {
		t.Error("the leaves have changed")
	}
}

// The form of what is hashed and signed must never change: chains that are kept
// would not verify any more.
func TestGoldenChain(t *testing.T) {
	bodies, points, _ := chain(t, "acme", 5, 4)
	var out bytes.Buffer
	fmt.Fprintln(&out, signer(t, 7).KeyID, signer(t, 7).Public())
	for _, b := range bodies {
		fmt.Fprintf(&out, "%s\n%s\n", b, audit.Hash(b))
	}
	for _, p := range points {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", b)
	}
	b, _ := json.Marshal(signer(t, 7).Cut("acme", audit.Position{Sequence: 4, Hash: points[0].Root}, noon))
	fmt.Fprintf(&out, "%s\n", b)
	file := filepath.Join("testdata", "chain.txt")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the form has changed:\n%s", out.String())
	}
}

// exported writes a chain as ExportAudit of the host does.
func exported(t *testing.T, n int) []string {
	t.Helper()
	s := signer(t, 7)
	bodies, points, end := chain(t, "acme", n, 4)
	lines := []string{`{"type":"header","format":"fermata-audit-1","chain":"acme"}`, `{"type":"key","publicKey":"` + s.Public() + `"}`}
	add := func(typ, member string, v any) {
		b, err := json.Marshal(map[string]any{"type": typ, member: v})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	for i, b := range bodies {
		add("entry", "entry", json.RawMessage(b))
		if (i+1)%4 == 0 {
			add("checkpoint", "checkpoint", points[i/4])
		}
	}
	add("end", "end", s.End("acme", end, noon))
	return lines
}

func TestVerifyExport(t *testing.T) {
	keys := keysOf(t, signer(t, 7))
	good := exported(t, 8)
	_, points, _ := chain(t, "acme", 8, 4)
	anchor := audit.Anchor{AtSequence: 4, Root: points[0].Root}
	verify := func(lines []string, k audit.Keys, anchors ...audit.Anchor) audit.Report {
		t.Helper()
		r, err := audit.VerifyExport(strings.NewReader(strings.Join(lines, "\n")+"\n"), k, anchors)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, k := range map[string]audit.Keys{"pinned": keys, "its own": nil} {
		if r := verify(good, k, anchor); !r.Valid || r.First != 1 || r.Last != 8 || r.Checkpoints != 2 || r.Anchored != 8 || r.Root != points[1].Root {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, change := range map[string]func([]string) []string{
		"edit":             func(l []string) []string { l[3] = strings.Replace(l[3], `"w1"`, `"w2"`, 1); return l },
		"edit of the last": func(l []string) []string { l[10] = strings.Replace(l[10], `"w7"`, `"w8"`, 1); return l },
		"delete":           func(l []string) []string { return slices.Delete(l, 3, 4) },
		"reorder":          func(l []string) []string { l[3], l[4] = l[4], l[3]; return l },
		"truncate":         func(l []string) []string { return l[:len(l)-4] },
		"cut off before the last checkpoint, end kept": func(l []string) []string { return append(l[:7:7], l[len(l)-1]) },
		"no end":                  func(l []string) []string { return l[:len(l)-1] },
		"a checkpoint is gone":    func(l []string) []string { return slices.Delete(l, 6, 7) },
		"something after the end": func(l []string) []string { return append(l, l[2]) },
		"another chain":           func(l []string) []string { l[0] = strings.Replace(l[0], "acme", "evil", 1); return l },
		"a line of its own":       func(l []string) []string { return slices.Insert(l, 3, `{"type":"note"}`) },
		"half a line":             func(l []string) []string { l[3] = l[3][:40]; return l },
		"a cut nobody signed": func(l []string) []string {
			l[0] = `{"type":"header","format":"fermata-audit-1","chain":"acme","cut":{"chain":"acme","sequence":4,"hash":"` + points[0].Root + `","at":"x","keyId":"` + signer(t, 7).KeyID + `","signature":""}}`
			return slices.Delete(l, 2, 7)
		},
	} {
		if r := verify(change(slices.Clone(good)), keys); r.Valid || len(r.Faults)+len(r.Anomalies) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// A forger's file holds the forger's key; who knows the host's is not taken in.
	if r := verify(good, keysOf(t, signer(t, 9))); r.Valid {
		t.Error("another key than the pinned one counts")
	}
	// A host that was set back exports a shorter chain that is whole in itself.
	if r := verify(exported(t, 4), keys, audit.Anchor{AtSequence: 8, Root: points[1].Root}); r.Valid {
		t.Error("a checkpoint that was kept is not missed")
	}
	for _, file := range []string{"", "{}\n", "no\n"} {
		if _, err := audit.VerifyExport(strings.NewReader(file), keys, nil); err == nil {
			t.Errorf("%q is read", file)
		}
	}
}

// A chain whose start was removed on purpose, and signed so, is whole.
func TestSignedCut(t *testing.T) {
	s := signer(t, 7)
	bodies, points, end := chain(t, "acme", 8, 4)
	mark := s.Cut("acme", audit.Position{Sequence: 4, Hash: audit.Hash(bodies[3])}, noon)
	keys := keysOf(t, s)
	if !keys.Removed("acme", mark) || keys.Removed("evil", mark) {
		t.Error("the mark is not of its chain alone")
	}
	w := audit.Walk("acme", audit.Position{Sequence: mark.Sequence, Hash: mark.Hash}, keys, points[1:])
	for i, b := range bodies[4:] {
		w.Add(int64(5+i), b)
	}
	if w.Close(end, 8); !w.Valid() {
		t.Errorf("%v %v", w.Anomalies, w.BadCheckpoints)
	}
	for _, change := range []func(*audit.Mark){
		func(m *audit.Mark) { m.Sequence++ }, func(m *audit.Mark) { m.Hash = end.Hash }, func(m *audit.Mark) { m.At += "0" },
		func(m *audit.Mark) { m.KeyID = "" }, func(m *audit.Mark) { m.Signature = s.End("acme", end, noon).Signature },
	} {
		m := mark
		if change(&m); keys.Removed("acme", m) {
			t.Errorf("a changed mark is good: %+v", m)
		}
	}
}

// Facts are bounded, whatever a caller calls things.
func TestFactsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	f := audit.Fact{At: noon, Actor: audit.Actor{Kind: "user"}, Action: "x", Outcome: audit.Done, Target: audit.Target{Type: "t", ID: long}, Detail: map[string]string{"name": long}}
	body, _, err := audit.Place("acme", audit.Position{}, f)
	if err != nil || len(body) > 2500 || !json.Valid(body) || bytes.Contains(body, []byte("\ufffd")) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	f.Detail = map[string]string{}
	for i := range 17 {
		f.Detail[fmt.Sprint(i)] = ""
	}
	for _, f := range []audit.Fact{f, {At: noon, Action: "x"}, {At: noon, Outcome: "x"}, {Action: "x", Outcome: "x"}} {
		if _, _, err := audit.Place("acme", audit.Position{}, f); err == nil {
			t.Errorf("%+v is placed", f)
		}
	}
}
