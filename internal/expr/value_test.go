package expr

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func TestTruthy(t *testing.T) {
	for v, want := range map[string]bool{
		``: false, ` `: false, `null`: false, ` false `: false, `0`: false, `-0`: false, `0.0`: false, `-0.000`: false,
		`0e5`: false, `0E-5`: false, `1e-400`: false, `""`: false, ` "" `: false,
		`true`: true, `1`: true, `-1`: true, `0.1`: true, `1e-300`: true, `1e400`: true, `5e-324`: true,
		`"0"`: true, `"false"`: true, `" "`: true, `"\u0000"`: true, `[]`: true, `{}`: true, `[0]`: true,
		`0.` + strings.Repeat("0", 400) + `1`: false,
	} {
		if got := Truthy(jsontext.Value(v)); got != want {
			t.Errorf("Truthy(%s) = %v, want %v", v, got, want)
		}
	}
	if Truthy(nil) {
		t.Error("Truthy(nil) = true")
	}
}

// TestTruthyLikeJavaScript compares with truthiness after JSON.parse.
func TestTruthyLikeJavaScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genJSON(t)
		var x any
		want := true
		if err := json.Unmarshal([]byte(v), &x); err == nil { // fails only beyond the range of a double
			switch x := x.(type) {
			case nil:
				want = false
			case bool:
				want = x
			case float64:
				want = x != 0
			case string:
				want = x != ""
			}
		}
		if got := Truthy(jsontext.Value(v)); got != want {
			t.Fatalf("Truthy(%s) = %v, want %v", v, got, want)
		}
	})
}

func same(t testing.TB, a, b string) bool {
	t.Helper()
	m := newMeter()
	ok, err := sameJSON(&m, []byte(a), []byte(b), 0)
	if err != nil {
		t.Fatalf("comparing %s and %s: %v", a, b, err)
	}
	return ok
}

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1`, `10e-1`, true}, {`100`, `1E+2`, true}, {`0`, `-0.0e7`, true}, {`-1`, `1`, false},
		{`9007199254740992`, `9007199254740993`, false}, {`1e400`, `1e401`, false}, {`1e400`, `10e399`, true},
		{`0.1`, `0.10000000000000000001`, false}, {`1e99999999999999999999`, `1e99999999999999999999`, true},
		{`1e99999999999999999999`, `1e99999999999999999998`, false}, {`0e99999999999999999999`, `0`, true},
		{`12345678901234567890123456789012345678901`, `12345678901234567890123456789012345678902`, false},
		{`"a"`, `"\u0061"`, true}, {`"a"`, `"b"`, false}, {`"1"`, `1`, false}, {`null`, `false`, false}, {`null`, ` null`, true},
		{`{"a":1,"b":[2]}`, `{ "b" : [2.0], "a":1 }`, true}, {`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1}`, `{"b":1}`, false}, {`[1,2]`, `[2,1]`, false}, {`[]`, `{}`, false}, {`[]`, `[ ]`, true}, {`[1]`, `[1,1]`, false},
		{`{"\u0061":1}`, `{"a":1}`, true}, {`true`, `true`, true}, {`[[[]]]`, `[[[ ]]]`, true},
	} {
		if got := same(t, c.a, c.b); got != c.want {
			t.Errorf("%s == %s: %v, want %v", c.a, c.b, got, c.want)
		}
		if got := same(t, c.b, c.a); got != c.want {
			t.Errorf("%s == %s: %v, want %v", c.b, c.a, got, c.want)
		}
	}
}

func TestSameJSONIsAnEquality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genJSON(t), genJSON(t)
		m := newMeter()
		is := func(x, y string) bool {
			ok, err := sameJSON(&m, []byte(x), []byte(y), 0)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if other := respace(a); !is(a, a) || !is(a, other) || !is(other, a) {
			t.Fatalf("%s is not equal to itself, spelled %s", a, other)
		}
		if is(a, b) != is(b, a) {
			t.Fatalf("equality of %s and %s depends on the order", a, b)
		}
		if is("["+a+"]", b) && is(a, b) {
			t.Fatalf("%s equals a list of itself", a)
		}
	})
}

func TestSameNumberIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genNumber(t), genNumber(t)
		if rapid.Bool().Draw(t, "equal") {
			b = otherNumber(a)
		}
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := sameNumber([]byte(a), []byte(b)), x.Cmp(y) == 0; got != want {
			t.Fatalf("%s == %s: %v, want %v", a, b, got, want)
		}
	})
}

func TestSameJSONIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	m := newMeter()
	if _, err := sameJSON(&m, []byte(deep), []byte(" "+deep[:5000]+" "+deep[5000:]), 0); err == nil {
		t.Error("values nested 5000 deep were compared")
	}
	defer func() {
		if recover() == nil {
			t.Error("a spent meter did not end the comparison")
		}
	}()
	m = meter{left: 10}
	_, _ = sameJSON(&m, []byte(`[1,2,3,4,5]`), []byte(`[1,2,3,4,6]`), 0)
}
