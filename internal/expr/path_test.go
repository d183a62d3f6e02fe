package expr

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

const doc = ` {"a": 1234567890123456789012345678901234567890, "b":{"x y":[1e400, {"c":-0.0}],
	"0":"zero","é":"\u00e9","esc\"aped":true,"null":null}, "list":[[1,2],[ ]], "" : "empty", "order-id": 7}`

func TestPath(t *testing.T) {
	for path, want := range map[string]string{
		``:                  trimmed(doc),
		`a`:                 `1234567890123456789012345678901234567890`,
		`["a"]`:             `1234567890123456789012345678901234567890`,
		`['a']`:             `1234567890123456789012345678901234567890`,
		`b["x y"][0]`:       `1e400`,
		`b['x y'][1].c`:     `-0.0`,
		`b["x y"].1.c`:      `-0.0`,
		`b.0`:               `"zero"`,
		`b["0"]`:            `"zero"`,
		`b.é`:               `"\u00e9"`,
		`b["\u00e9"]`:       `"\u00e9"`,
		`b["esc\"aped"]`:    `true`,
		`b['esc"aped']`:     `true`,
		`b.null`:            `null`,
		`list[0]`:           `[1,2]`,
		`list[0][1]`:        `2`,
		`list.1`:            `[ ]`,
		`[""]`:              `"empty"`,
		`order-id`:          `7`,
		`b["x y"][000000]`:  `1e400`,
		`b["x y"][0000000]`: `1e400`,
	} {
		got, ok := Path(jsontext.Value(doc), path)
		if !ok || string(got) != want {
			t.Errorf("Path(doc, %q) = %s, %v; want %s", path, got, ok, want)
		}
	}
}

func trimmed(s string) string { return string(trim([]byte(s))) }

func TestPathLeadsNowhere(t *testing.T) {
	for _, path := range []string{
		"z", "a.b", "b.x", "list[2]", "list[0][2]", "list[1][0]", "b[0]", `list["0"]`, "list.x", "b.null.x",
		// and malformed ones
		".", "a.", ".a", "a..b", "a[", "a[]", "a[-1]", "a[1", `a["`, `a["x`, `a["x"`, `a["\q"]`, `a["\ud800"]`,
		"a b", "a[1]b", "a]", "a[1.5]", "a[ 1]", "a[1234567890]", "a(b)", "\"a\"", "a\\b", "\xff",
	} {
		if got, ok := Path(jsontext.Value(doc), path); ok {
			t.Errorf("Path(doc, %q) = %s; want nothing", path, got)
		}
	}
}

func TestPathOnMalformedJSON(t *testing.T) {
	for _, v := range []string{
		"", " ", "{", "[", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":[`, `{"a" 1}`, "[,", "[:]", `["a`, "}", "]", `{"a":"\`,
		`{"b":{"a":1`, `{,"a":1}`, `{a:1}`, "[1 2]", `{"b":]}`,
	} {
		for _, path := range []string{"", "a", "a.b", "b.a", "[0]", "[1]", "a[0]", "[0][0]"} {
			Path(jsontext.Value(v), path) // must return
		}
	}
}

// TestPathExact: whatever way a document is spelled, a path gives the very bytes.
func TestPathExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := genObject(t, 3)
		walk(t, root.text, "", root)
	})
}

func walk(t *rapid.T, text, path string, n node) {
	got, ok := Path(jsontext.Value(text), path)
	if !ok || string(got) != n.text {
		t.Fatalf("Path(%s, %q) = %s, %v; want %s", text, path, got, ok, n.text)
	}
	for _, c := range n.children {
		step := c.step
		if path == "" && step[0] == '.' {
			step = step[1:]
		}
		walk(t, text, path+step, c.node)
	}
}

// TestPathAndCELAgree: a source means the same whether it takes the short way or
// goes through CEL.
func TestPathAndCELAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := genObject(t, 2)
		s := Values{"variables": jsontext.Value(root.text)}
		for _, c := range root.children {
			source := "variables" + c.step
			short, err := Compile(source)
			if err != nil {
				t.Fatalf("Compile(%q): %v", source, err)
			}
			long, err := Compile("[" + source + "][0]")
			if err != nil {
				t.Fatalf("Compile([%s]): %v", source, err)
			}
			want, err := short.Eval(s)
			if err != nil {
				t.Fatalf("Eval(%q) over %s: %v", source, root.text, err)
			}
			got, err := long.Eval(s)
			if kind(want) == '{' || kind(want) == '[' {
				if string(got) != string(want) || err != nil {
					t.Fatalf("%s: CEL gives %s, %v; the path gives %s", source, got, err, want)
				}
			}
			if kind(want) == '"' {
				a, _ := unquote(want)
				b, _ := unquote(got)
				if a != b || err != nil {
					t.Fatalf("%s: CEL gives %s, %v; the path gives %s", source, got, err, want)
				}
			}
		}
	})
}
