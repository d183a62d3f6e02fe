package expr

import (
	"strings"
	"testing"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/parser"
	"github.com/go-json-experiment/json/jsontext"
)

// hostile is a scope of some megabytes, to be multiplied by the sources below.
func hostile() Values {
	long := strings.Repeat("abcdefghij", 200_000)
	return Values{"variables": jsontext.Value(`{"s":"` + long + `","half":"` + long[:len(long)/2] + `",` +
		`"nums":[` + strings.Repeat("1,", 500_000) + `2],` +
		`"words":[` + strings.Repeat(`"abcdefghij",`, 100_000) + `"z"],` +
		`"objs":[` + strings.Repeat(`{"a":1,"b":{"c":[1,2,3]}},`, 50_000) + `{}],` +
		`"deep":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `,` +
		`"evil":"(abc){900}","x":"x"}`)}
}

// TestHostileEval: every source here would, unguarded, take minutes or all of the
// memory. With the guards the whole test takes a second or two; should one fail,
// it does not come back.
func TestHostileEval(t *testing.T) {
	const (
		cost = "the evaluation is too expensive (its limit is a cost of 1000000)"
		size = "the result is larger than 16777216 bytes"
		each = "lists.range(10000).all(i, "
	)
	doubled := "[[1,2,3]]" + strings.Repeat(".map(x, [x, x])", 60)
	summed := "[[1]]" + strings.Repeat(".map(x, x + x)", 60) + "[0]"
	mapped := `[{"a": 1}]` + strings.Repeat(`.map(x, {"a": x, "b": x})`, 60)
	s := hostile()
	for source, want := range map[string]string{
		// calls that multiply their arguments
		`variables.s.replace("", variables.s)`:  cost,
		`variables.s.replace("a", variables.s)`: cost,
		`variables.words.join(variables.s)`:     cost,
		`variables.s.split("")`:                 cost,
		`variables.nums.distinct()`:             cost,
		`variables.nums.sort()`:                 cost,
		`variables.s + variables.s + variables.s + variables.s + variables.s + variables.s`: cost,
		// values that share their parts
		doubled:                        size,
		doubled + " == " + doubled:     cost,
		doubled + ".flatten(50)":       cost,
		`"%s".format(` + doubled + `)`: cost,
		"1 in " + doubled:              cost,
		summed:                         cost,
		summed + ".reverse()":          cost,
		mapped:                         size,
		mapped + " == " + mapped:       cost,
		`["a"]` + strings.Repeat(".map(x, x + x)", 60): cost,
		`lists.range(10000).map(i, variables.s)`:       size,
		`lists.range(10000).map(i, variables.nums)`:    size,
		// loops over expensive steps
		each + each + `true))`:                      cost,
		each + `size(variables.s) > 0)`:             cost,
		each + `variables.s == variables.s)`:        cost,
		each + `variables.half < variables.s)`:      cost,
		each + `variables.objs == variables.objs)`:  cost,
		each + `!("zz" in variables.words))`:        cost,
		each + `(variables.nums + [1]).size() > 0)`: cost,
		each + `variables.s.upperAscii() != "")`:    cost,
		each + `!variables.s.contains("zzz"))`:      cost,
		each + `"%s".format([variables.s]) != "")`:  cost,
		`variables.nums.map(x, x)`:                  cost,
		// patterns
		`variables.s.matches("(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)z")`: cost,
		`variables.x.matches(variables.evil)`:                              `column 20: the pattern is too complex`,
		each + `!variables.x.matches("a{400}" + string(i)))`:               cost,
		// nesting
		`variables.deep.flatten(100000)`: cost,
		// no error may hide behind ||
		`variables.s.replace("", variables.s) == "" || true`: cost,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Errorf("Compile(%.80s…): %v", source, err)
			continue
		}
		if got, err := p.Eval(s); err == nil || err.Error() != want {
			t.Errorf("%.80s…\n gives %.40s, %v\n want  %s", source, got, err, want)
		}
	}
}

// TestHostileCompile: sources within the limit of length that take seconds to
// compile when their types, or their trees, are left to grow.
func TestHostileCompile(t *testing.T) {
	fill := func(unit string) string {
		return "[" + strings.Repeat(unit+",", (MaxSource-10)/(len(unit)+1)) + "1]"
	}
	in := func(before, middle, after string, n int) string {
		return strings.Repeat(before, n) + middle + strings.Repeat(after, n)
	}
	const compiles, refused = true, false
	for source, want := range map[string]bool{
		fill(in("[", "", "]", 90)):                               compiles,
		fill(in("{1:", "1", "}", 90)):                            compiles,
		fill(in("optional.of(", "1", ")", 90)):                   compiles,
		fill(in("[", "", "]", 40) + "==" + in("[", "", "]", 40)): compiles,
		in("[1].map(x,", "x", ")", 90):                           compiles,
		"[1]" + strings.Repeat(".map(x,[x,x])", 90):              compiles,
		fill("[1]" + strings.Repeat(".map(x,[x])", 90)):          refused,
		fill(in("[1].all(x,", "true", ")", 90)):                  refused,
		in("(", "1", ")", 8000):                                  refused,
		strings.Repeat("[", 16000):                               refused,
		strings.Repeat("!", 16000) + "true":                      compiles,
		strings.Repeat("true?1:", 2000) + "1":                    refused,
		"1" + strings.Repeat("+1", 8000):                         refused,
		"true" + strings.Repeat("&&true", 2000):                  compiles,
		"inputs.x" + strings.Repeat(".b", 8000) + "+1":           refused,
		strings.Repeat("'''", 5000):                              refused,
		strings.Repeat("`", 16000):                               refused,
		strings.Repeat("loop ", 3000):                            refused,
		fill("loop"):                                             compiles,
		fill(`"a".matches("[\\p{L}]{300}")`):                     compiles,
	} {
		if _, err := Compile(source); (err == nil) != want {
			t.Errorf("Compile(%.60s…): %v", source, err)
		}
	}
}

// TestParsersAgree holds the parser in use, CEL's newer one, to the older.
func TestParsersAgree(t *testing.T) {
	e, err := theEngine()
	if err != nil {
		t.Fatal(err)
	}
	older, err := parser.NewParser(parser.EnableOptionalSyntax(true), parser.Macros(e.env.Macros()...))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		`a`, `a.b.c`, `a["b"][0]`, `a.?b[?0]`, `!a && -b > c || d <= e`, `a ? b : c ? d : e`, `a || b || c || d && e && f`,
		`1 + 2 * 3 - 4 / 5 % 6`, `(1 + 2) * 3`, `-1`, `--1`, `!!a`, `-(1)`, `- 1`, `1.5e3`, `.5`, `0x1F`, `12u`, `-9223372036854775808`,
		`"a\nb\u00e9\x41\101"`, `'a"b'`, `r"a\b"`, `"""a "b" c"""`, `b"abc"`, `br'x\y'`, "a.`b-c`", `[1, 2, ?a,]`, `{"a": 1, ?b: c,}`,
		`f(a, b).g(c)`, `a.map(x, x + 1).filter(y, y > 2).exists(z, has(z.a.b))`, `a.all(x, x.exists_one(y, y == x))`,
		`xs.sortBy(x, -x.p)`, `math.greatest(1, 2, 3)`, `optional.of(a).optMap(x, x + 1).orValue(2)`, `a in [1, 2] == true`,
		"a // comment\n + b", `"loop" + loop_`, `null == true != false`, `a[b[c[0]]]`, `1 < 2 == true`, `{}.a`, `[].size()`,
	} {
		text := common.NewTextSource(source)
		a, errs := e.parser.Parse(text)
		b, olderErrs := older.Parse(text)
		if len(errs.GetErrors()) > 0 || len(olderErrs.GetErrors()) > 0 {
			t.Errorf("%s: %v, %v", source, errs.ToDisplayString(), olderErrs.ToDisplayString())
			continue
		}
		if !ast.EquivExpr(a.Expr(), b.Expr()) {
			t.Errorf("the parsers differ on %s", source)
		}
	}
}

func TestRespell(t *testing.T) {
	for source, want := range map[string]string{
		`loop`: `lo0p`, `loop.loop`: `lo0p.loop`, `a.loop`: `a.loop`, `a . loop`: `a . loop`, `a.?loop`: `a.?loop`,
		`a ? loop : loop`: `a ? lo0p : lo0p`, `"loop"`: `"loop"`, `'loop' + loop`: `'loop' + lo0p`, `r"loop\" + loop`: `r"loop\" + lo0p`,
		`"\"loop" + loop`: `"\"loop" + lo0p`, `"""loop"loop""" + loop`: `"""loop"loop""" + lo0p`, `br'loop'`: `br'loop'`,
		"a.`loop` + loop": "a.`loop` + lo0p", "// loop\nloop": "// loop\nlo0p", `loops + xloop + loop2`: `loops + xloop + loop2`,
		`[loop,loop]`: `[lo0p,lo0p]`, `f(loop)[loop]`: `f(lo0p)[lo0p]`, `1.loop`: `1.loop`, `rb`: `rb`, `"loop`: `"loop`,
	} {
		if got, alias := respell(source); got != want || alias >= 0 {
			t.Errorf("respell(%s) = %s, %d; want %s", source, got, alias, want)
		}
	}
}
