package config

import (
	"fmt"
	"slices"
	"strings"
)

const prefix = "FERMATA_"

// others are variables of this program that are no settings of a host.
var others = []string{FileEnv, "FERMATA_SERVER", "FERMATA_API_KEY", "FERMATA_PROFILE"}

// CheckEnviron looks for variables that begin like a setting and are none. One
// that is nearly the name of a setting is a slip, which fails; the names of the
// others are returned, to be warned of. They are not refused: an orchestrator that
// has a service of this program's name puts variables such as FERMATA_PORT into
// every process. environ is a list of name=value.
func CheckEnviron(environ []string) (unknown []string, err error) {
	known := slices.Clone(others)
	for i := range settings {
		known = append(known, settings[i].Env())
	}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, prefix) || value == "" || slices.Contains(known, name) || strings.HasPrefix(name, prefix+"TEST_") {
			continue
		}
		for _, k := range known {
			if near(name, k) {
				return nil, fmt.Errorf("%s: there is no such setting; did you mean %s? (from the environment)", name, k)
			}
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown, nil
}

// near reports whether two names differ by at most two letters, or by
// underscores alone.
func near(a, b string) bool {
	a, b = strings.TrimPrefix(a, prefix), strings.TrimPrefix(b, prefix)
	return strings.ReplaceAll(a, "_", "") == strings.ReplaceAll(b, "_", "") || len(b) > 4 && distance(a, b) <= 2
}

// distance is how many letters have to be put in, taken out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
