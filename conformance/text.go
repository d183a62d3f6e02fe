package conformance

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people: what went wrong in full, what could
// not be measured with its reason, and the rest as numbers.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s %s against %s\n", r.Suite, r.Version, r.Host.BaseURL)
	fmt.Fprintf(b, "host: %s %s, protocol %s (prefers %s); looked at: major %d\n", or(r.Host.Name, "unnamed"), r.Host.Version,
		strings.Join(r.Host.ProtocolVersions, ", "), or(r.Host.PreferredVersion, "nothing"), r.TargetMajor)
	r.section(b, Fail, "FAILED")
	r.section(b, Blocked, "BLOCKED (the requirement binds and was not measured)")
	r.section(b, Inapplicable, "INAPPLICABLE")
	if len(r.Profiles) > 0 {
		fmt.Fprintln(b, "\nPROFILES")
	}
	for _, p := range r.Profiles {
		fmt.Fprintf(b, "  %-30s %s\n", p.ID, p.line())
		for _, s := range p.Scenarios {
			fmt.Fprintf(b, "    %-34s %s\n", s.ID, s.Status)
		}
	}
	t := r.Totals
	fmt.Fprintf(b, "\n%d checks: %d passed, %d failed, %d below a SHOULD, %d blocked, %d inapplicable\n",
		len(r.Results), t.Pass, t.Fail, t.ShouldFail, t.Blocked, t.Inapplicable)
	return b.Flush()
}

func (r *Report) section(b *bufio.Writer, s Status, title string) {
	shown := false
	for i := range r.Results {
		x := &r.Results[i]
		if x.Status != s {
			continue
		}
		if !shown {
			fmt.Fprintf(b, "\n%s\n", title)
			shown = true
		}
		fmt.Fprintf(b, "  %s  %s, %s\n", x.ID, x.Level, x.Requirement.Section)
		if s == Fail {
			fmt.Fprintf(b, "    wanted: %s\n", x.Requirement.Says)
		}
		fmt.Fprintf(b, "    %s\n", x.Reason)
		if s == Fail {
			for _, e := range x.Evidence {
				fmt.Fprintf(b, "      %s\n", e)
			}
		}
	}
}

func (p *ProfileResult) line() string {
	if !p.Claimed {
		return fmt.Sprintf("not claimed (discovery lacks %s)", strings.Join(p.Missing, ", "))
	}
	return string(p.Verdict)
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
