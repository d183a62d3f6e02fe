package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Format names the form of an exported chain: one JSON object a line, of the types
// header, key, entry, checkpoint and end, in this order, a checkpoint right after
// the last entry that it anchors.
const Format = "fermata-audit-1"

// maxLine bounds one line of an exported chain.
const maxLine = 1 << 20

// What the signatures of statements are made for.
const (
	endDomain = "fermata-audit-end-1"
	cutDomain = "fermata-audit-cut-1"
)

// Line is one line of an exported chain.
type Line struct {
	Type       string         `json:"type"`
	Format     string         `json:"format,omitzero"`
	Chain      string         `json:"chain,omitzero"`
	Cut        *Mark          `json:"cut,omitzero"` // what is before it was removed
	PublicKey  string         `json:"publicKey,omitzero"`
	Entry      jsontext.Value `json:"entry,omitzero"`
	Checkpoint *Checkpoint    `json:"checkpoint,omitzero"`
	End        *Mark          `json:"end,omitzero"`
}

// Mark is a signed statement about a place in a chain: that everything up to it was
// removed on purpose, or that an export ends there.
type Mark struct {
	Chain     string `json:"chain"`
	Sequence  int64  `json:"sequence"`
	Hash      string `json:"hash"`
	At        string `json:"at"`
	KeyID     string `json:"keyId"`
	Signature string `json:"signature"`
}

func (m Mark) digest(domain string) []byte {
	m.Signature = ""
	b, err := json.Marshal(&m)
	if err == nil {
		b, err = Canonical(b)
	}
	if err != nil {
		panic("audit: a mark does not encode: " + err.Error())
	}
	return digest(domain, b)
}

// Cut signs that a chain's entries up to a position are removed.
func (s Signer) Cut(chain string, p Position, at time.Time) Mark {
	return s.mark(cutDomain, chain, p, at)
}

// End signs where an export ends.
func (s Signer) End(chain string, p Position, at time.Time) Mark {
	return s.mark(endDomain, chain, p, at)
}

func (s Signer) mark(domain, chain string, p Position, at time.Time) Mark {
	m := Mark{Chain: chain, Sequence: p.Sequence, Hash: p.Hash, At: Stamp(at), KeyID: s.KeyID}
	m.Signature = s.sign(m.digest(domain))
	return m
}

// Removed reports whether m is a good statement that a chain's entries up to it
// were removed.
func (k Keys) Removed(chain string, m Mark) bool { return k.marked(cutDomain, chain, m) }

func (k Keys) marked(domain, chain string, m Mark) bool {
	return m.Chain == chain && k.good(m.KeyID, m.Signature, m.digest(domain))
}

// Anchor is a checkpoint somebody has kept elsewhere.
type Anchor struct {
	AtSequence int64
	Root       string
}

// Report is what the verification of an exported chain came to.
type Report struct {
	Chain       string    `json:"chain"`
	First       int64     `json:"first"` // sequence of the first entry; 0 if there is none
	Last        int64     `json:"last"`
	Checkpoints int       `json:"checkpoints"`
	Anchored    int64     `json:"anchored"` // the last entry that a good checkpoint anchors
	Root        string    `json:"root"`     // of that checkpoint
	Keys        []string  `json:"keys"`     // ids of the keys that counted
	Valid       bool      `json:"valid"`
	Faults      []string  `json:"faults"`
	Anomalies   []Anomaly `json:"anomalies"`
}

// VerifyExport verifies an exported chain. With trusted keys only theirs count,
// else those that the file itself names, which proves no more than that the file
// is whole. Every anchor must be found in it. The error says that the file cannot
// be read; what is wrong with the chain is in the report.
func VerifyExport(r io.Reader, trusted Keys, anchors []Anchor) (Report, error) {
	v := exported{keys: trusted, own: len(trusted) == 0, anchors: slices.Clone(anchors)}
	if v.own {
		v.keys = Keys{}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l, json.RejectUnknownMembers(true)); err != nil {
			v.fault("line %d does not decode", n)
			continue
		}
		if n == 1 && (l.Type != "header" || l.Format != Format) {
			return Report{}, fmt.Errorf("audit: the file is not of the form %s", Format)
		}
		v.line(n, l)
	}
	if err := lines.Err(); err != nil {
		return Report{}, fmt.Errorf("audit: %w", err)
	}
	if v.w == nil {
		return Report{}, errors.New("audit: the file is empty")
	}
	return v.close(), nil
}

// exported is the verification of a file.
type exported struct {
	keys    Keys
	own     bool
	anchors []Anchor
	w       *Walker
	end     *Mark
	out     Report
}

func (v *exported) fault(format string, args ...any) {
	if len(v.out.Faults) < maxAnomalies {
		v.out.Faults = append(v.out.Faults, fmt.Sprintf(format, args...))
	}
}

func (v *exported) line(n int, l Line) {
	if v.end != nil {
		v.fault("line %d is after the end", n)
		return
	}
	switch {
	case l.Type == "header" && v.w == nil:
		v.header(l)
	case l.Type == "key":
		id, key, err := ParseKey(l.PublicKey)
		switch {
		case err != nil:
			v.fault("line %d: %v", n, err)
		case v.own:
			v.keys[id] = key
		}
	case l.Type == "entry" && len(l.Entry) > 0:
		v.entry(n, l.Entry)
	case l.Type == "checkpoint" && l.Checkpoint != nil:
		v.checkpoint(*l.Checkpoint)
	case l.Type == "end" && l.End != nil:
		v.end = l.End
	default:
		v.fault("line %d has no place here", n)
	}
}

func (v *exported) header(l Line) {
	start := Position{}
	if l.Cut != nil {
		start = Position{l.Cut.Sequence, l.Cut.Hash}
	}
	v.out.Chain = l.Chain
	v.w = Walk(l.Chain, start, v.keys, nil)
	v.w.cut = l.Cut
}

func (v *exported) entry(n int, entry jsontext.Value) {
	body, err := Canonical(entry)
	if err != nil {
		v.fault("line %d: the entry is no valid JSON", n)
		return
	}
	e, _ := read(body)
	if v.out.First == 0 {
		v.out.First = e.Sequence
	}
	v.w.Add(e.Sequence, body)
}

func (v *exported) checkpoint(c Checkpoint) {
	bad := len(v.w.BadCheckpoints)
	if v.w.point(c); len(v.w.BadCheckpoints) == bad {
		v.out.Checkpoints++
		v.out.Anchored, v.out.Root = c.AtSequence, c.Root
		v.anchors = slices.DeleteFunc(v.anchors, func(a Anchor) bool { return a == Anchor{c.AtSequence, c.Root} })
	}
}

func (v *exported) close() Report {
	w := v.w
	if w.cut != nil && !v.keys.Removed(v.out.Chain, *w.cut) {
		v.fault("that the entries up to %d were removed on purpose is not signed by a trusted key", w.cut.Sequence)
	}
	switch {
	case v.end == nil:
		v.fault("the file breaks off: it has no end line")
	case !v.keys.marked(endDomain, v.out.Chain, *v.end):
		v.fault("the end line is not signed by a trusted key")
	default:
		w.Close(Position{v.end.Sequence, v.end.Hash}, w.base)
	}
	for _, at := range w.BadCheckpoints {
		v.fault("the checkpoint at %d does not hold", at)
	}
	for _, a := range v.anchors {
		v.fault("the checkpoint at %d with the root %s is not in the file", a.AtSequence, a.Root)
	}
	out := v.out
	out.Last, out.Anomalies = w.end.Sequence, w.Anomalies
	if out.Anomalies == nil {
		out.Anomalies = []Anomaly{}
	}
	out.Keys = slices.Sorted(maps.Keys(v.keys))
	out.Valid = len(out.Faults) == 0 && len(out.Anomalies) == 0
	if out.Faults == nil {
		out.Faults = []string{}
	}
	return out
}
