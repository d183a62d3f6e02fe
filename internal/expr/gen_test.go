package expr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// node is a generated JSON value: its exact text, and where its children lie in
// it, so that a test knows what a path must give without any decoder's help.
type node struct {
	text     string
	children []child
}

type child struct {
	step string // as a path spells it after its parent
	node node
}

// genNode draws a value of at most the given depth, spelled as untidily as JSON
// allows: white space, escapes, numbers of any size and form.
func genNode(t *rapid.T, depth int) node {
	kinds := 3
	if depth > 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return node{text: rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")}
	case 1:
		return node{text: genNumber(t)}
	case 2:
		return node{text: genString(t, rapid.String().Draw(t, "string"))}
	case 3:
		return genArray(t, depth)
	}
	return genObject(t, depth)
}

func genNumber(t *rapid.T) string {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
}

// genString spells s as JSON, with some characters escaped that need not be.
func genString(t *rapid.T, s string) string {
	quoted, _ := json.Marshal(s)
	out := string(quoted)
	if rapid.Bool().Draw(t, "escape") {
		out = strings.ReplaceAll(out, "A", `\u0041`) // JSON's own escapes are in lower case
		out = strings.ReplaceAll(out, "/", `\/`)
	}
	return out
}

func genSpace(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r "}).Draw(t, "space")
}

func genArray(t *rapid.T, depth int) node {
	n := node{text: "["}
	for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
		if i > 0 {
			n.text += ","
		}
		c := genNode(t, depth-1)
		n.text += genSpace(t) + c.text + genSpace(t)
		step := fmt.Sprintf("[%d]", i)
		if rapid.Bool().Draw(t, "dotted") {
			step = fmt.Sprintf(".%d", i)
		}
		n.children = append(n.children, child{step, c})
	}
	n.text += "]"
	return n
}

func genObject(t *rapid.T, depth int) node {
	n := node{text: "{"}
	keys := rapid.SliceOfNDistinct(rapid.String(), 0, 20, rapid.ID).Draw(t, "keys")
	for i, key := range keys {
		if i > 0 {
			n.text += ","
		}
		c := genNode(t, depth-1)
		n.text += genSpace(t) + genString(t, key) + genSpace(t) + ":" + genSpace(t) + c.text + genSpace(t)
		n.children = append(n.children, child{spellStep(t, key), c})
	}
	n.text += "}"
	return n
}

func spellStep(t *rapid.T, key string) string {
	if identifier(key) && rapid.Bool().Draw(t, "dotted") {
		return "." + key
	}
	var out strings.Builder
	out.WriteString(`["`)
	for _, r := range key {
		switch {
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r < ' ':
			out.WriteString(fmt.Sprintf(`\u%04x`, r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String() + `"]`
}

// genJSON draws the text of a value.
func genJSON(t *rapid.T) string { return genNode(t, 3).text }

// respace spells the same JSON value differently: other white space, other
// escapes, members in reverse, numbers in another form.
func respace(v string) string {
	dec := json.NewDecoder(strings.NewReader(v))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		panic(err)
	}
	return rewrite(x)
}

func rewrite(x any) string {
	switch x := x.(type) {
	case map[string]any:
		var parts []string
		for k, v := range x {
			parts = append(parts, ascii(k)+" : "+rewrite(v))
		}
		return "{ " + strings.Join(parts, " ,") + "}"
	case []any:
		var parts []string
		for _, v := range x {
			parts = append(parts, rewrite(v))
		}
		return "[" + strings.Join(parts, " , ") + " ]"
	case json.Number:
		return otherNumber(string(x))
	case string:
		return ascii(x)
	}
	out, _ := json.Marshal(x)
	return string(out)
}

func ascii(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		if r > 0xFFFF {
			r1, r2 := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
			fmt.Fprintf(&out, `\u%04x\u%04x`, r1, r2)
		} else {
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// otherNumber writes the same number with its point moved: 12.5 as 125e-1.
func otherNumber(s string) string {
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exp, _ = strconv.Atoi(s[i+1:])
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	return fmt.Sprintf("%s.%s0e%d", whole, frac, exp)
}
