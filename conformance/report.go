package conformance

import (
	"encoding/json"
	"io"
	"time"
)

// Status is how a check ended.
type Status string

// The four ends of a check.
const (
	Pass         Status = "pass"
	Fail         Status = "fail"
	Inapplicable Status = "inapplicable" // the host does not advertise what the check is about
	Blocked      Status = "blocked"      // the requirement binds, and could not be measured
)

// Level is how strongly the text asks.
type Level string

// The two levels. A broken SHOULD is a fail, but costs no profile.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Requirement is what a check holds the host to.
type Requirement struct {
	ID      string `json:"id"`
	Section string `json:"section"` // where the text says so
	Says    string `json:"says"`    // in this suite's words
}

// Result is the outcome of one check.
type Result struct {
	ID          string      `json:"id"`
	Scenario    string      `json:"scenario,omitempty"` // the floor scenario it belongs to
	Requirement Requirement `json:"requirement"`
	Level       Level       `json:"level"`
	Status      Status      `json:"status"`
	Reason      string      `json:"reason,omitempty"`
	Assertions  int         `json:"assertions"`         // statements about the host that were tested
	Evidence    []string    `json:"evidence,omitempty"` // request line, status, code
}

// Host is what discovery says about the host.
type Host struct {
	BaseURL          string   `json:"baseUrl"`
	Name             string   `json:"name,omitempty"`
	Version          string   `json:"version,omitempty"`
	ProtocolVersions []string `json:"protocolVersions,omitempty"`
	PreferredVersion string   `json:"preferredVersion,omitempty"`
	DiscoverySHA256  string   `json:"discoverySha256,omitempty"`
	Families         []string `json:"families,omitempty"`
	Vendor           string   `json:"vendor,omitempty"`

	// What the host says of itself beside discovery, if it does.
	Build       *Build       `json:"build,omitempty"`
	Relaxations []Relaxation `json:"relaxations,omitempty"`
}

// Totals counts results. Failures of a SHOULD are counted apart.
type Totals struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	ShouldFail   int `json:"shouldFail"`
	Inapplicable int `json:"inapplicable"`
	Blocked      int `json:"blocked"`
}

// Report is the outcome of a run of the suite.
type Report struct {
	Suite       string          `json:"suite"`
	Version     string          `json:"version"`
	TargetMajor int             `json:"targetMajor"`
	Filter      string          `json:"filter,omitempty"`
	StartedAt   time.Time       `json:"startedAt"`
	DurationMs  int64           `json:"durationMs"`
	Host        Host            `json:"host"`
	Totals      Totals          `json:"totals"`
	Profiles    []ProfileResult `json:"profiles"`
	Results     []Result        `json:"results"`

	discovery []byte // the document as it came; nil if it could not be read
}

func (r *Report) count() {
	r.Totals = Totals{}
	for i := range r.Results {
		switch x := &r.Results[i]; x.Status {
		case Pass:
			r.Totals.Pass++
		case Inapplicable:
			r.Totals.Inapplicable++
		case Blocked:
			r.Totals.Blocked++
		case Fail:
			if x.Level == Should {
				r.Totals.ShouldFail++
			} else {
				r.Totals.Fail++
			}
		}
	}
}

// Result finds the outcome of a check.
func (r *Report) Result(id string) (Result, bool) {
	for i := range r.Results {
		if r.Results[i].ID == id {
			return r.Results[i], true
		}
	}
	return Result{}, false
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
