package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var seeds = []string{
	`variables.order.id`, `variables["x y"][0].z`, `outputs.score > 3 && has(variables.x)`, `loop.index + 1`, `item.map(x, x * 2)`,
	`{"a": inputs.a, ?"b": variables.?b}`, `"%s".format([inputs])`, `variables.s.matches("a+")`, `r'\d' + """x"""`, `inputs.sortBy(i, i.p)`,
	`inputs.exists(i, i in [1, 2.0, "3"])`, `timestamp("2026-01-01T00:00:00Z") + duration("1h")`, `a ? b : c`, `-1 - -1`, "loop//\n.x",
	`optional.of(inputs).orValue(1)`, `inputs + inputs == []`, `b"\xff"`, `type(inputs)`, `variables[inputs]`, `lists.range(9).flatten()`,
	`string(inputs).split("").join("x").replace("a", "b")`, `math.least(inputs, 2)`, `18446744073709551615u - 1`, `[[[[[]]]]]`, "`", `{`, `'`,
}

// FuzzCompile: any text compiles or gives a one-line *Error, and what compiles can
// be run over nothing.
func FuzzCompile(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Compile(source)
		if err != nil {
			wellFormed(t, err)
			return
		}
		_, err = p.Eval(nil)
		wellFormed(t, err)
		_, err = p.Test(nil)
		wellFormed(t, err)
	})
}

// FuzzEval: any text over any bytes gives JSON or an *Error. Malformed values are
// not promised a right answer, only a return.
func FuzzEval(f *testing.F) {
	values := []string{`{"a":[1,2.5,"x",null,{"b":true}],"x y":[{"z":1e400}]}`, `[1,[2,[3]],"a"]`, `{"a":`, `["\ud800"]`, `-0`, ` `, `{"a" 1}`, `[[[[`}
	for i, s := range seeds {
		f.Add(s, values[i%len(values)])
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		v := jsontext.Value(value)
		s := Values{"variables": v, "inputs": v, "item": v, "loop": v, "outputs": v}
		valid := v.IsValid()
		if p, err := Compile(source); err == nil {
			out, err := p.Eval(s)
			wellFormed(t, err)
			if err == nil && valid && !out.IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("%s over %s gives %s", source, value, out)
			}
		}
		Path(v, source)
		Truthy(v)
		for kind := range kinds {
			c := Condition{Type: kind, Left: source, Right: v}
			if !kinds[kind].right {
				c.Right = nil
			}
			if test, err := c.Compile(); err == nil {
				_, err = test.Eval(s, v)
				wellFormed(t, err)
			}
		}
	})
}

func wellFormed(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("%T is not an *Error: %v", err, err)
	case e.Message == "" || strings.ContainsAny(e.Message, "\r\n"):
		t.Errorf("not a one-line message: %q", e.Message)
	case strings.Contains(e.Message, "internal error"):
		t.Errorf("%q: %s", e.Source, e.Message)
	}
}
