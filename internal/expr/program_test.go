package expr

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var scope = Values{
	"variables": jsontext.Value(`{"order":{"id":1234567890123456789012345678901234567890,"total":3.5,"n":10,
		"big":18446744073709551615,"neg":-5,"items":[ {"id":"a","p":1}, {"id":"b","p":2.5} ]},
		"x":1e400,"name":"Jos\u00e9","arr":[3,1,2],"e":{},"s":"5","f":true,"nul":null,"loop":"mine","neg0":-0,
		"exact":9007199254740993,"text":"a\"b\\c"}`),
	"outputs": jsontext.Value(`{"score":4}`),
	"loop":    jsontext.Value(` {"index":3} `),
	"inputs":  jsontext.Value(`{"a":[1,2,3],"k":"name"}`),
	"mine":    jsontext.Value(`7`),
}

func eval(t *testing.T, source string) (string, error) {
	t.Helper()
	p, err := Compile(source, "mine")
	if err != nil {
		t.Fatalf("Compile(%q): %v", source, err)
	}
	v, err := p.Eval(scope)
	if err == nil && !v.IsValid() {
		t.Errorf("%s gives %s, which is not JSON", source, v)
	}
	return string(v), err
}

func TestEval(t *testing.T) {
	for source, want := range map[string]string{
		// the short way
		`variables.order.id`:             `1234567890123456789012345678901234567890`,
		` variables.x `:                  `1e400`,
		`variables["order"].items[1].id`: `"b"`,
		`variables.order.items`:          `[ {"id":"a","p":1}, {"id":"b","p":2.5} ]`,
		`variables.nul`:                  `null`,
		`error`:                          `null`,
		`loop`:                           `{"index":3}`,
		`loop.index`:                     `3`,
		`variables.loop`:                 `"mine"`,
		`mine`:                           `7`,
		// numbers
		`outputs.score > 3`:                                 `true`,
		`outputs.score > 3.5`:                               `true`,
		`outputs.score >= 4.0`:                              `true`,
		`variables.order.total > 3`:                         `true`,
		`variables.order.n == 10.0`:                         `true`,
		`variables.exact + 0`:                               `9007199254740993`,
		`variables.order.n * 1.2`:                           `12`,
		`variables.order.n / 4`:                             `2`,
		`variables.order.n / 4.0`:                           `2.5`,
		`10 * 1.5`:                                          `15`,
		`variables.order.big - 1`:                           `18446744073709551614`,
		`variables.order.big + variables.order.neg`:         `18446744073709551610`,
		`variables.order.big + variables.order.total`:       `18446744073709552000`,
		`variables.neg0 * 1.0`:                              `-0`,
		`0.1 + 0.2`:                                         `0.30000000000000004`,
		`1e21 * 1.0`:                                        `1e+21`,
		`1.0 / 10000000.0`:                                  `1e-7`,
		`[1u, 18446744073709551615u, -9223372036854775808]`: `[1,18446744073709551615,-9223372036854775808]`,
		`math.greatest(variables.arr)`:                      `3`,
		`math.greatest(1, 2.5)`:                             `2.5`,
		// names, presence, optional members
		`has(variables.nope)`:                             `false`,
		`has(variables.order)`:                            `true`,
		`has(error.code)`:                                 `false`,
		`error == null`:                                   `true`,
		`variables.nul == null`:                           `true`,
		`variables.?nope.?x.orValue("d")`:                 `"d"`,
		`variables.?nope`:                                 `null`,
		`variables.?name`:                                 `"José"`,
		`[?variables.?nope, ?variables.?s]`:               `["5"]`,
		`{?"a": variables.?nope, ?"b": optional.of([1])}`: `{"b":[1]}`,
		`loop.index + 1`:                                  `4`,
		`[1,2].map(loop, loop + 1)`:                       `[2,3]`,
		`mine + 1`:                                        `8`,
		`variables[inputs.k]`:                             `"José"`,
		`variables[?"nope"].hasValue()`:                   `false`,
		`variables.arr[inputs.a[0]]`:                      `1`,
		// whole values stay as they are
		`variables.f ? variables.order.items : "x"`: `[ {"id":"a","p":1}, {"id":"b","p":2.5} ]`,
		`[variables.order.items, 1, "x"]`:           `[[ {"id":"a","p":1}, {"id":"b","p":2.5} ],1,"x"]`,
		// macros and lists
		`variables.order.items.map(i, i.p * 2)`:                               `[2,5]`,
		`variables.order.items.filter(i, i.p > 1)`:                            `[{"id":"b","p":2.5}]`,
		`variables.order.items.exists(i, i.id == "b")`:                        `true`,
		`variables.order.items.all(i, has(i.id))`:                             `true`,
		`variables.e.all(k, false)`:                                           `true`,
		`variables.order.items[0].map(k, k)`:                                  `["id","p"]`,
		`{"b": 1, "a": 2, "c": 3}.map(k, k)`:                                  `["a","b","c"]`,
		`{"b": 1, "a": variables.name, "c": [1.5, null]}`:                     `{"a":"José","b":1,"c":[1.5,null]}`,
		`variables.arr + [4]`:                                                 `[3,1,2,4]`,
		`variables.arr == [3, 1, 2.0]`:                                        `true`,
		`[3, 1, 2.0] == variables.arr`:                                        `true`,
		`variables.e == {}`:                                                   `true`,
		`variables.order == variables.order`:                                  `true`,
		`variables.order.items[0] == {"p": 1.0, "id": "a"}`:                   `true`,
		`3.0 in variables.arr`:                                                `true`,
		`"id" in variables.order`:                                             `true`,
		`1 in variables.order`:                                                `false`,
		`size(variables.arr) + size(variables.e) + size(variables.name)`:      `7`,
		`variables.arr.sort()`:                                                `[1,2,3]`,
		`[2, 1.5, 3u].sort()`:                                                 `[1.5,2,3]`,
		`variables.order.items.sortBy(i, -i.p).map(i, i.id)`:                  `["b","a"]`,
		`[{"k": 1, "v": "x"}, {"k": 1, "v": "y"}].sortBy(o, o.k).map(o, o.v)`: `["x","y"]`,
		`variables.arr.reverse()`:                                             `[2,1,3]`,
		`variables.arr.slice(0, 2)`:                                           `[3,1]`,
		`[[1], [2, [3]]].flatten()`:                                           `[1,2,[3]]`,
		`[1, 1.0, 2].distinct()`:                                              `[1,2]`,
		`lists.range(3)`:                                                      `[0,1,2]`,
		// strings
		`variables.text`:                                             `"a\"b\\c"`,
		`variables.text + "!"`:                                       `"a\"b\\c!"`,
		`variables.name.matches("^J.*$")`:                            `true`,
		`variables.name.matches(variables.s)`:                        `false`,
		`variables.name.indexOf("é")`:                                `3`,
		`"tacocat".lastIndexOf("a", 4)`:                              `1`,
		`"tacocat".lastIndexOf("a")`:                                 `5`,
		`"tacocat".indexOf("c", 3)`:                                  `4`,
		`"tacocat".indexOf("", 3)`:                                   `3`,
		`"tacocat".lastIndexOf("")`:                                  `7`,
		`"tacocat".indexOf("x")`:                                     `-1`,
		`"a".replace("", "bb")`:                                      `"bbabb"`,
		`"a,b".split(",")`:                                           `["a","b"]`,
		`variables.arr.map(x, string(x)).join("-")`:                  `"3-1-2"`,
		`"%s is %d".format([variables.name, 3])`:                     `"José is 3"`,
		`"😀".size()`:                                                 `1`,
		`b"abc"`:                                                     `"YWJj"`,
		`timestamp("2026-01-02T03:04:05Z")`:                          `"2026-01-02T03:04:05Z"`,
		`timestamp("2026-01-02T03:04:05.5+01:00") - duration("90s")`: `"2026-01-02T03:02:35.5+01:00"`,
		`duration("90s")`:                                            `"90s"`,
		`timestamp("2026-01-02T03:04:05Z").getHours()`:               `3`,
		`type(variables.arr) == list`:                                `true`,
		"variables // the run's\n .s":                                `"5"`,
	} {
		if got, err := eval(t, source); err != nil || got != want {
			t.Errorf("%s\n gives %s, %v\n want  %s", source, got, err, want)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for _, c := range []struct{ source, message, missing string }{
		{`variables.nope`, `variables has no member "nope"`, "variables.nope"},
		{`variables.order.nope.x`, `variables.order has no member "nope"`, "variables.order.nope.x"},
		{`variables.arr[5]`, `variables.arr has no element [5]`, "variables.arr[5]"},
		{`error.code`, `error is absent, so error.code is too`, "error.code"},
		{`variables.name.x`, `variables.name is a string, so variables.name.x is absent`, "variables.name.x"},
		{`variables.nul.x`, `variables.nul is null, so variables.nul.x is absent`, "variables.nul.x"},
		{`variables.order.nope > 3`, `column 16: variables.order has no member "nope"`, "variables.order.nope"},
		{`error.code == "x"`, `column 6: error is absent, so error.code is too`, "error.code"},
		{`variables.order.items[7].id == "a"`, `column 25: variables.order.items has no element [7]`, "variables.order.items[7].id"},
		{`variables.order.items.all(i, i.zzz > 1)`, `column 31: i has no member "zzz"`, "i.zzz"},
		{`[variables.order.items.map(i, [i.zzz])]`, `column 33: i has no member "zzz"`, "i.zzz"},
		{`loop.nope + 1`, `column 5: loop has no member "nope"`, "loop.nope"},
		{"1 +\n variables.nope", `line 2, column 11: variables has no member "nope"`, "variables.nope"},
		{`variables[inputs.a[0]]`, `column 10: no such key`, ""},
		{`variables.x + 1`, `the number 1e400 is too large to compute with`, ""},
		{`variables.s + 1`, `column 13: string + int cannot be computed`, ""},
		{`variables.s > 3`, `column 13: string > int cannot be computed`, ""},
		{`variables.order.big + 1`, `column 21: integer overflow`, ""},
		{`1 / 0`, `column 3: division by zero`, ""},
		{`variables.order.big % 0`, `column 21: division by zero`, ""},
		{`0.0 / 0.0`, `the number NaN has no form in JSON`, ""},
		{`[1.0 / 0.0]`, `the number +Inf has no form in JSON`, ""},
		{`{1: 2}`, `the key 1 of a map is not a string`, ""},
		{`int`, `a value of type type has no form in JSON`, ""},
		{`[1, "a"].sort()`, `column 14: string and int cannot be put in order`, ""},
		{`variables.name.matches(variables.name + "(")`, `column 23: the pattern is invalid`, ""},
		{`lists.range(10001)`, `column 12: lists.range: size 10001 exceeds maximum allowed (10000)`, ""},
	} {
		got, err := eval(t, c.source)
		var e *Error
		if !errors.As(err, &e) || err.Error() != c.message || e.Missing != c.missing || e.Source != c.source {
			t.Errorf("%s\n gives %s, %v\n want  %s, missing %q", c.source, got, err, c.message, c.missing)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for source, want := range map[string]string{
		``:                          `the expression is empty`,
		" \n ":                      `the expression is empty`,
		"\xff":                      `the expression is not valid UTF-8`,
		`foo`:                       `column 1: undeclared reference to 'foo'`,
		`variables.a + foo.bar`:     `column 15: undeclared reference to 'foo'`,
		"1 + \n foo":                `line 2, column 2: undeclared reference to 'foo'`,
		`1 +`:                       `column 4: mismatched input '<EOF>' expecting expression`,
		`"é" + foo`:                 `column 7: undeclared reference to 'foo'`,
		`lo0p.index`:                `column 1: undeclared reference to 'lo0p'`,
		"loop.x +\n  lo0p":          `line 2, column 3: undeclared reference to 'lo0p'`,
		`while.x`:                   `column 1: reserved identifier: while`,
		`"a" - 1`:                   `column 5: found no matching overload for '_-_' applied to '(string, int)'`,
		`nope(1)`:                   `column 5: undeclared reference to 'nope'`,
		`"a".matches("(")`:          `column 12: the pattern is invalid: missing closing ): (`,
		`"a".matches("a{999}{9}")`:  `column 12: the pattern is invalid: invalid nested repetition operator: {999}{9}`,
		`"a".matches("(abc){999}")`: `column 12: the pattern is too complex`,
		`google.protobuf.Struct{}`:  `column 23: messages cannot be built here; use a map`,
		`timestamp("2026-01-02T03:04:05Z").getHours("Europe/Berlin")`: `column 43: found no matching overload for 'getHours' applied to 'timestamp.(string)'`,
		`["a", foo]`:         `column 7: undeclared reference to 'foo'`,
		`variables.a.map(x)`: `column 17: undeclared reference to 'x'`,
		strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101): `expression recursion limit exceeded: 100`,
		strings.Repeat("x", MaxSource+1):                          `the expression is longer than 16384 bytes`,
	} {
		_, err := Compile(source)
		var e *Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("Compile(%.60q) = %v\n want %s", source, err, want)
		}
	}
	for _, name := range []string{"", "a b", "1a", "in", "true", "lo0p", "é", `b"`} {
		if _, err := Compile("1", name); err == nil {
			t.Errorf("%q was accepted as a name", name)
		}
	}
}

func TestProgramTest(t *testing.T) {
	for source, want := range map[string]string{
		`variables.f`:           "true",
		`!variables.f`:          "false",
		`outputs.score > 3`:     "true",
		`variables.s`:           "a condition must be true or false, and variables.s is a string",
		`variables.nul`:         "a condition must be true or false, and variables.nul is null",
		`error`:                 "a condition must be true or false, and error is null",
		`variables.order.n + 1`: "a condition must be true or false, and this is a value of type int",
		`variables.?f`:          "a condition must be true or false, and this is a value of type optional_type",
		`variables.nope`:        `variables has no member "nope"`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := p.Test(scope)
		got := map[bool]string{true: "true", false: "false"}[ok]
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Test(%s): %s, want %s", source, got, want)
		}
	}
}

func TestNoScope(t *testing.T) {
	for source, want := range map[string]string{`variables`: `null`, `variables == null`: `true`, `1 + 1`: `2`} {
		p, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Scope{nil, Values(nil), Values{"variables": nil}} {
			if got, err := p.Eval(s); err != nil || string(got) != want {
				t.Errorf("%s over nothing gives %s, %v", source, got, err)
			}
		}
	}
}

// TestLazy: what an expression does not touch is not decoded. The test reads it
// off from numbers that decoding would refuse.
func TestLazy(t *testing.T) {
	s := Values{"variables": jsontext.Value(`{"bad":1e999,"deep":{"bad":[1e999],"good":1},"list":[1e999,{"bad":1e999,"good":2}]}`)}
	for source, want := range map[string]string{
		`variables.deep.good + variables.list[1].good`: `3`,
		`size(variables) + size(variables.list)`:       `5`,
		`[variables.deep]`:                             `[{"bad":[1e999],"good":1}]`,
		`"bad" in variables`:                           `true`,
		`variables.list == variables.list`:             `true`,
		`variables.map(k, k)`:                          `["bad","deep","list"]`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Eval(s); err != nil || string(got) != want {
			t.Errorf("%s gives %s, %v; want %s", source, got, err, want)
		}
	}
}

// TestDeterminism: maps that expressions build live in Go's, whose order is random.
func TestDeterminism(t *testing.T) {
	source := `[{"d": 1, "a": 2, "c": {"z": 1, "y": 2}, "b": 3}].map(m, [m, m.map(k, k), m.filter(k, k != "a"), m.c.map(k, k)])`
	want := `[[{"a":2,"b":3,"c":{"y":2,"z":1},"d":1},["a","b","c","d"],["b","c","d"],["y","z"]]]`
	for range 50 {
		if got, err := eval(t, source); err != nil || got != want {
			t.Fatalf("gives %s, %v", got, err)
		}
	}
}

// TestSharedErrors: some errors of CEL's are one value for all evaluations. Under
// the race detector this finds those that settle does not know.
func TestSharedErrors(t *testing.T) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for _, source := range []string{
		`math.abs(variables.min)`, `timestamp(9223372036854775807)`, `timestamp("0000-01-01T00:00:00-23:00")`, `duration("1") > duration("1s")`,
		`!variables.s`, `-variables.s`, `variables.s[0]`, `variables.arr["x"]`, `variables.s.startsWith(1 + variables.min)`,
		`int(variables.e)`, `int(1e300)`, `uint(-1 * variables.order.n)`, `double("x")`, `bool("x")`, `string(variables.arr)`, `bytes(variables.e)`,
		`variables.s.charAt(99)`, `variables.s.substring(5, 2)`, `variables.s.split(variables.arr)`, `variables.arr.join(",")`, `variables.s.replace(1 + variables.min, "x")`,
		`optional.none().value()`, `variables.s.orValue(1)`, `variables.s.hasValue()`, `variables.s.map(x, x)`, `variables.s ? 1 : 2`, `variables.arr.slice(2, 1)`,
		`math.greatest(variables.words)`, `math.sign(variables.s)`, `math.ceil(variables.s)`, `math.bitShiftLeft(1, -1)`, `math.sqrt(variables.s)`,
		`lists.range(-1)`, `variables.s.flatten()`, `variables.arr.flatten(-1)`, `variables.s.getHours()`, `duration(variables.s)`, `timestamp(variables.s)`,
		`"%d".format([variables.s])`, `"%".format([1])`, `variables.s in variables.s`, `1 in variables.s`, `size(variables.f)`, `type(variables.s)`, `{variables.arr: 1}`,
		`variables.min - 1`, `variables.min * variables.min`, `variables.min / -1`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Logf("%s: %v", source, err)
			continue
		}
		s := Values{"variables": jsontext.Value(`{"min":-9223372036854775808,"s":"x","arr":[1,2],"words":["a"],"e":{},"f":true,"order":{"n":10}}`)}
		for range 2 {
			all.Go(func() {
				<-start
				for range 20 {
					v, err := p.Eval(s)
					if err == nil {
						t.Errorf("%s gives %s", source, v)
						return
					}
					wellFormed(t, err)
				}
			})
		}
	}
	close(start)
	all.Wait()
}

func TestConcurrentUse(t *testing.T) {
	p, err := Compile(`variables.order.items.filter(i, i.p * 1.0 > 1 && i.id.matches("^[a-z]$")).map(i, {"id": i.id, "n": loop.index})`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got, err := p.Eval(scope); err != nil || string(got) != `[{"id":"b","n":3}]` {
					t.Errorf("gives %s, %v", got, err)
					return
				}
				if _, err := Compile(`variables.order.items.map(x, x.p + mine)`, "mine"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
