package jsonschema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pattern is a regular expression that pays for its matching. RE2 is linear in
// the subject, but the factor is the size of the program.
type pattern struct {
	re    *regexp.Regexp
	size  int
	meter *meter
}

// compilePattern is the regular expressions of a schema that pays to m. A pattern
// is measured before it is compiled: (x{999}){9} is short, its program is not.
func compilePattern(m *meter) jsonschema.RegexpEngine {
	return func(src string) (jsonschema.Regexp, error) {
		if len(src) > maxPattern {
			return nil, errors.New("is too long a pattern")
		}
		tree, err := syntax.Parse(src, syntax.Perl)
		if err != nil {
			return nil, errors.New("is not a regular expression that RE2 knows")
		}
		size := programSize(tree)
		if size > maxProgram {
			return nil, errors.New("is too complex a pattern")
		}
		re, err := regexp.Compile(src)
		if err != nil {
			return nil, errors.New("is not a regular expression that RE2 knows")
		}
		return &pattern{re, size, m}, nil
	}
}

// programSize bounds the instructions of a parsed pattern without expanding it.
func programSize(tree *syntax.Regexp) int {
	n := 1
	for _, sub := range tree.Sub {
		n += programSize(sub) + 1
	}
	switch tree.Op {
	case syntax.OpLiteral:
		n += len(tree.Rune)
	case syntax.OpRepeat:
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, maxProgram+1)
}

// MatchString implements jsonschema.Regexp.
func (p *pattern) MatchString(s string) bool {
	const stepsForOne = 50
	p.meter.spend(1 + min(len(s), 1<<30)*p.size/stepsForOne)
	return p.re.MatchString(s)
}

// String implements jsonschema.Regexp.
func (p *pattern) String() string { return p.re.String() }
