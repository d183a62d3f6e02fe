package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Row is one figure.
type Row struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Floor is what the same bytes cost without a host, in the same unit; 0 if
	// there is no such thing. Ratio says how much of the floor the figure
	// reaches where more is better, and how many times the floor it takes where
	// less is better.
	Floor float64 `json:"floor,omitzero"`
	Ratio float64 `json:"ratio,omitzero"`
}

// Report is everything one run of the benchmark has measured.
type Report struct {
	At      time.Time `json:"at"`
	Machine string    `json:"machine"`
	Quick   bool      `json:"quick"`
	Rows    []Row     `json:"rows"`
	// Skipped are parts that this machine lacks something for, and what.
	Skipped []string `json:"skipped,omitempty"`

	progress io.Writer
}

// add notes a figure. floor is 0 if it has none.
func (r *Report) add(group, name string, value float64, unit string, floor float64) {
	row := Row{Group: group, Name: name, Value: value, Unit: unit, Floor: floor}
	if floor > 0 {
		row.Ratio = value / floor
	}
	r.Rows = append(r.Rows, row)
	fmt.Fprintln(r.progress, "  "+row.String())
}

// skip notes that a part was left out.
func (r *Report) skip(part, why string) {
	r.Skipped = append(r.Skipped, part+": "+why)
	fmt.Fprintf(r.progress, "  left out: %s\n", why)
}

// String is the row as the table shows it.
func (r Row) String() string {
	s := fmt.Sprintf("%-44s %12s %-8s", r.Name, short(r.Value), r.Unit)
	if r.Floor > 0 {
		s += fmt.Sprintf(" %12s %8.2f", short(r.Floor), r.Ratio)
	}
	return s
}

// short writes a number with three or four digits that matter.
func short(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	fmt.Fprintf(w, "%s, %s\n", r.At.Format(time.RFC3339), r.Machine)
	group := ""
	for _, row := range r.Rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(w, "\n%-44s %12s %-8s %12s %8s\n%s\n", group, "measured", "", "floor", "ratio", strings.Repeat("-", 88))
		}
		fmt.Fprintln(w, strings.TrimRight(row.String(), " "))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "\nleft out: %s\n", s)
	}
}

// JSON writes the report for machines.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}
