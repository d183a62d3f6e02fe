package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The results of rows.
const (
	rowPass         = "executed-pass"
	rowFail         = "executed-fail"
	rowSkipped      = "skipped"
	rowInapplicable = "inapplicable"
	rowBlocked      = "blocked"
)

// Row is one requirement of the ledger.
type Row struct {
	ID         string          `json:"id"`
	Scenario   string          `json:"scenario"`
	Result     string          `json:"result"`
	Assertions int             `json:"assertions,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Evidence   json.RawMessage `json:"evidence,omitempty"`

	// text is the row as it was read: the digest is over what a bundle says, and
	// not over what this suite would have written.
	text json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Row) UnmarshalJSON(b []byte) error {
	type plain Row
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	r.text = slices.Clone(b)
	return nil
}

// digested is what the witness digest covers of a row.
func (r *Row) digested() any {
	if r.text != nil {
		return r.text
	}
	return r
}

// maxDetail bounds the reason of a row.
const maxDetail = 600

// ledger makes the rows of a report: one for each requirement, the sum of the
// checks that hold the host to it. A SHOULD stays outside the floor scenarios: it
// is recorded, and costs no profile.
func ledger(r *Report, clean func(string) string) []Row {
	type key struct{ id, scenario string }
	at := map[key]int{}
	var rows []Row
	var reasons [][]string
	for i := range r.Results {
		x := &r.Results[i]
		k := key{x.Requirement.ID, rowScenario(x)}
		n, ok := at[k]
		if !ok {
			n = len(rows)
			at[k] = n
			rows, reasons = append(rows, Row{ID: k.id, Scenario: k.scenario}), append(reasons, nil)
		}
		rows[n].Result = worse(rows[n].Result, rowResult(x.Status))
		rows[n].Assertions += x.Assertions
		if x.Status != Pass {
			reasons[n] = append(reasons[n], fmt.Sprintf("%s %s: %s", x.ID, x.Status, x.Reason))
		}
	}
	for i := range rows {
		if rows[i].Result != rowPass {
			rows[i].Detail = short(clean(strings.Join(reasons[i], "; ")), maxDetail)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.ID, b.ID) })
	return rows
}

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

// rowScenario is the floor scenario a row is evidence for, else its section.
func rowScenario(x *Result) string {
	if x.Scenario != "" && x.Level == Must {
		return x.Scenario
	}
	section, _, _ := strings.Cut(x.ID, ".")
	if x.Level == Should {
		return "fermata-should-" + section
	}
	return "fermata-" + section
}

func rowResult(s Status) string {
	return map[Status]string{Pass: rowPass, Fail: rowFail, Inapplicable: rowInapplicable, Blocked: rowBlocked}[s]
}

// worse sums two results up: what went wrong shows, and a pass outweighs a leg
// that does not apply.
func worse(a, b string) string {
	for _, r := range []string{rowFail, rowBlocked, rowSkipped, rowPass, rowInapplicable} {
		if a == r || b == r {
			return r
		}
	}
	return b
}

// witness is the digest of the rows, and of the relaxations if there are any: so
// neither can be taken out of a signed bundle.
func witness(rows []Row, relaxed []Relaxation) (string, error) {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Row) int { return strings.Compare(a.ID, b.ID) })
	list := make([]any, len(sorted))
	for i := range sorted {
		list[i] = sorted[i].digested()
	}
	if len(relaxed) == 0 {
		return digestOf(list)
	}
	return digestOf(map[string]any{"rows": list, "relaxations": relaxed})
}

// sum fills in what follows from the rows.
func (b *Bundle) sum() error {
	rows := b.Results.Rows
	b.Results.Totals, b.AssertionCount, b.Detail = totals(rows), 0, nil
	for _, r := range rows {
		b.AssertionCount += r.Assertions
		if r.Result != rowPass {
			if b.Detail == nil {
				b.Detail = &BundleDetail{}
			}
			b.Detail.NonPass = append(b.Detail.NonPass, NonPass{r.ID, r.Result, r.Detail})
		}
	}
	var err error
	b.WitnessSHA256, err = witness(rows, b.Host.Relaxations)
	return err
}

func totals(rows []Row) BundleTotals {
	var t BundleTotals
	for _, r := range rows {
		switch r.Result {
		case rowPass:
			t.Pass++
		case rowFail:
			t.Fail++
		case rowSkipped:
			t.Skipped++
		case rowInapplicable:
			t.Inapplicable++
		case rowBlocked:
			t.Blocked++
		}
	}
	return t
}
