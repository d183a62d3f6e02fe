package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a static binary on an empty file system knows the zones, too

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/robfig/cron/v3"
)

// What becomes of ticks that were missed, and of a tick that comes while the run of
// an earlier one is active.
const (
	Last = "last" // one run, for the newest of them
	None = "none"
	All  = "all"

	Allow = "allow"
	Skip  = "skip"
)

const (
	shortest = time.Minute
	longest  = 366 * 24 * time.Hour
)

// Spec is the configuration of a schedule trigger, checked.
type Spec struct {
	Cron     string         // five fields, or a word such as @daily; empty if Every is set
	Every    time.Duration  // whole minutes; 0 if Cron is set
	Timezone string         // of Cron; UTC if nothing was said
	Inputs   jsontext.Value // of each run; nil for none
	CatchUp  string         // Last, None or All
	Overlap  string         // Allow or Skip

	loc  *time.Location
	cron cron.Schedule
	wall bool // the ticks are times on the wall; see Next
}

// Fault is what is wrong with a configuration.
type Fault struct {
	Field   string // a member's name; empty for the whole
	Message string
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

func fault(field, format string, args ...any) error {
	return &Fault{field, fmt.Sprintf(format, args...)}
}

type config struct {
	Cron     *string        `json:"cron"`
	Every    *string        `json:"every"`
	Timezone *string        `json:"timezone"`
	Inputs   jsontext.Value `json:"inputs"`
	CatchUp  *string        `json:"catchUp"`
	Overlap  *string        `json:"overlap"`
}

// Parse reads a configuration. The error is a *Fault.
func Parse(data []byte) (*Spec, error) {
	if len(data) == 0 {
		return nil, fault("", "is required: say when, as in {\"cron\": \"0 3 * * *\"}")
	}
	var c config
	if err := json.Unmarshal(data, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, unreadable(err)
	}
	s := &Spec{Timezone: "UTC", CatchUp: Last, Overlap: Allow, Inputs: c.Inputs}
	for _, x := range []struct {
		field   string
		from    *string
		to      *string
		allowed []string
	}{{"catchUp", c.CatchUp, &s.CatchUp, []string{Last, None, All}}, {"overlap", c.Overlap, &s.Overlap, []string{Allow, Skip}}} {
		if x.from == nil {
			continue
		}
		if *x.to = *x.from; !slices.Contains(x.allowed, *x.from) {
			return nil, fault(x.field, "%q is not one of %s", *x.from, strings.Join(x.allowed, ", "))
		}
	}
	if len(c.Inputs) > 0 && c.Inputs.Kind() != '{' {
		return nil, fault("inputs", "must be an object")
	}
	switch {
	case c.Cron == nil && c.Every == nil:
		return nil, fault("cron", "cron or every is required")
	case c.Cron != nil && c.Every != nil:
		return nil, fault("every", "goes without cron")
	case c.Every != nil && c.Timezone != nil:
		return nil, fault("timezone", "goes with cron only: an interval is the same everywhere")
	case c.Every != nil:
		return s, s.interval(*c.Every)
	}
	if c.Timezone != nil {
		s.Timezone = *c.Timezone
	}
	return s, s.times(*c.Cron)
}

func unreadable(err error) error {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		field := strings.TrimPrefix(string(sem.JSONPointer), "/")
		if errors.Is(err, json.ErrUnknownName) {
			return fault(field, "is not a member of a schedule's configuration")
		}
		return fault(field, "has the wrong type")
	}
	return fault("", "%v", err)
}

func (s *Spec) interval(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fault("every", "%q is not a duration such as 15m or 6h", text)
	}
	if d < shortest || d > longest || d%time.Minute != 0 {
		return fault("every", "%q is not a number of whole minutes, from 1m to %dh", text, longest/time.Hour)
	}
	s.Every = d
	return nil
}

func (s *Spec) times(text string) error {
	// The empty name and Local would be whatever the process has.
	loc, err := time.LoadLocation(s.Timezone)
	if err != nil || s.Timezone == "" || s.Timezone == "Local" {
		return fault("timezone", "%q is not a time zone such as Europe/Berlin", s.Timezone)
	}
	s.Cron, s.loc = text, loc
	// The parser has a zone and an interval of its own, which would be a second way to
	// say the same.
	if strings.Contains(text, "=") || strings.HasPrefix(strings.TrimSpace(text), "@every") {
		return fault("cron", "%q is not a cron expression: a zone goes to timezone, an interval to every", text)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(text)
	if err != nil {
		return fault("cron", "%q is not a cron expression of five fields or a word such as @daily: %v", text, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fault("cron", "%q is not a cron expression of five fields or a word such as @daily", text)
	}
	s.wall = !open(text)
	spec.Location = loc
	if s.wall {
		spec.Location = time.UTC
	}
	s.cron = spec
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fault("cron", "%q is a time that never comes", text)
	}
	return nil
}

// open reports whether an expression leaves the hour open, as in every 15 minutes.
func open(text string) bool {
	f := strings.Fields(text)
	return len(f) == 5 && (f[1][0] == '*' || f[1][0] == '?') || text == "@hourly"
}
