package relax

import (
	"fmt"
	"slices"
)

// Mode says what a host is for.
type Mode string

// The modes. Development lets an operator relax protections, one setting each;
// none is relaxed by default. Production refuses to start with any of them.
const (
	Development Mode = "development"
	Production  Mode = "production"
)

// Valid reports whether m is a mode.
func (m Mode) Valid() bool { return m == Development || m == Production }

// Relaxation is one protection that a setting has loosened. It holds for as long
// as the process was started with the setting (durability "deployment").
type Relaxation struct {
	Name       string // short and stable, such as egress-private-ranges
	Setting    string // the setting that opened it
	Effect     string // what is possible now, in one clause
	Family     string // the family of the protocol whose obligation that is
	Obligation string // the protection that no longer holds in full
}

// Refused is the failure of a production host with a relaxation.
type Refused struct{ Relaxation }

// Error implements error.
func (r Refused) Error() string {
	return fmt.Sprintf("%s: %s; a host in production mode does not start with that", r.Setting, r.Effect)
}

// Check fails with the first relaxation if the mode allows none.
func Check(m Mode, list []Relaxation) error {
	if m == Production && len(list) > 0 {
		return Refused{list[0]}
	}
	return nil
}

// Of finds the relaxation that a setting stands for.
func Of(list []Relaxation, setting string) (Relaxation, bool) {
	i := slices.IndexFunc(list, func(r Relaxation) bool { return r.Setting == setting })
	if i < 0 {
		return Relaxation{}, false
	}
	return list[i], true
}
