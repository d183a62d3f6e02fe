package expr

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`0`, `-0`, true},
		{`9007199254740993`, `9007199254740992`, false}, // the same float64
		{`1e400`, `1e401`, false},
		{`"a"`, `"\u0061"`, true},
		{`"é"`, `"e\u0301"`, false}, // other code points, whatever they look like
		{`{"a":1,"b":[2]}`, ` { "b" : [2.0], "a" : 1 } `, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[]`, `[null]`, false},
		{`null`, `false`, false},
		{`true`, `true`, true},
		{``, ``, false},
		{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("[ ", 5000) + strings.Repeat("]", 5000), false},
	} {
		if got := Equal(jsontext.Value(c.a), jsontext.Value(c.b)); got != c.want {
			t.Errorf("Equal(%.40s, %.40s) = %v", c.a, c.b, got)
		}
		if got := Equal(jsontext.Value(c.b), jsontext.Value(c.a)); got != c.want {
			t.Errorf("Equal(%.40s, %.40s) = %v", c.b, c.a, got)
		}
	}
}
