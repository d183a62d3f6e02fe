package archive

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/store"
)

// Report is what was found on the way.
type Report struct {
	Tables []Sum `json:"tables"`
	// Chains and Entries are of the audit log, and Faults where a chain of it does not
	// hold. A store is moved as it is: what is wrong with its audit log stays wrong.
	Chains  int      `json:"chains"`
	Entries int64    `json:"entries"`
	Faults  []string `json:"faults,omitempty"`
	// Masters are the ids of the master keys that a host needs to start on it, the first
	// hundred of them.
	Masters []string `json:"masterKeys"`
}

// Rows is the number of rows of a table.
func (r *Report) Rows(table string) int64 {
	for _, s := range r.Tables {
		if s.Table == table {
			return s.Rows
		}
	}
	return 0
}

// maxFaults bounds how many faults are listed.
const maxFaults = 20

// maxMasters bounds how many master keys are listed. A host has one, or two while it is
// given another one.
const maxMasters = 100

// stretch is how many entries are followed by one walker, which remembers them.
const stretch = 1000

// follower looks at rows as they go by: it follows the chains of the audit log from
// hash to hash, and notes the master keys. Signatures it cannot verify: the keys are
// sealed.
type follower struct {
	*summed
	report Report
	heads  map[string]audit.Position
	cuts   map[string]audit.Position

	chain string
	walk  *audit.Walker
	n     int
}

func newFollower() *follower {
	return &follower{summed: newSummed(), heads: map[string]audit.Position{}, cuts: map[string]audit.Position{}}
}

func (f *follower) visit(t *store.Table, row []store.Value) error {
	switch t.Name {
	case "vault_keys":
		if m := string(row[2].Bytes); len(f.report.Masters) < maxMasters && !slices.Contains(f.report.Masters, m) {
			f.report.Masters = append(f.report.Masters, m)
		}
	case "audit_heads":
		f.heads[string(row[0].Bytes)] = audit.Position{Sequence: row[1].Int, Hash: string(row[2].Bytes)}
	case "audit_cuts":
		f.cuts[string(row[0].Bytes)] = audit.Position{Sequence: row[1].Int, Hash: string(row[2].Bytes)}
	case "audit_entries":
		f.entry(string(row[0].Bytes), row[1].Int, row[2].Bytes)
	}
	return f.summed.visit(t, row)
}

func (f *follower) entry(chain string, seq int64, body []byte) {
	if f.walk == nil || chain != f.chain {
		f.close()
		f.chain, f.walk = chain, audit.Walk(chain, f.cuts[chain], nil, nil)
	}
	if f.n++; f.n%stretch == 0 {
		f.faults(f.walk)
		f.walk = audit.Walk(chain, f.walk.End(), nil, nil)
	}
	f.walk.Add(seq, body)
	f.report.Entries++
}

func (f *follower) close() {
	if f.walk == nil {
		return
	}
	f.walk.Close(f.heads[f.chain], 0)
	f.faults(f.walk)
	f.report.Chains++
	delete(f.heads, f.chain)
	f.walk = nil
}

func (f *follower) faults(w *audit.Walker) {
	for _, a := range w.Anomalies {
		if len(f.report.Faults) == maxFaults {
			return
		}
		f.report.Faults = append(f.report.Faults, fmt.Sprintf("%s does not hold at %d", f.chain, a.AtSeq))
	}
}

// end is the report, once everything has gone by.
func (f *follower) end() Report {
	f.close()
	for _, chain := range slices.Sorted(maps.Keys(f.heads)) { // of which no entry is left
		f.chain, f.walk = chain, audit.Walk(chain, f.cuts[chain], nil, nil)
		f.close()
	}
	f.report.Tables = f.list()
	return f.report
}
