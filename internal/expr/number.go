package expr

import (
	"bytes"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// decodeNumber gives a JSON number to CEL without losing what CEL can hold: an
// integer that fits is an int, then a uint; the rest are doubles. One beyond the
// range of a double is an error, because a wrong number is worse than none.
func decodeNumber(v []byte) ref.Val {
	if n, ok := smallInteger(v); ok {
		return types.Int(n)
	}
	text := string(v)
	if !bytes.ContainsAny(v, ".eE") && text != "-0" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(n)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if math.IsInf(f, 0) {
		return types.NewErr("the number %s is too large to compute with", short(text))
	}
	if err != nil {
		return types.NewErr("%s is not a number", short(text))
	}
	return types.Double(f)
}

// smallInteger parses an integer of up to 18 digits without copying it. It leaves
// -0 alone: as an int it would lose its sign.
func smallInteger(v []byte) (n int64, ok bool) {
	digits := bytes.TrimPrefix(v, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(v) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(v) {
		n = -n
	}
	return n, true
}

// short keeps a value quoted in a message readable.
func short(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// sameNumber compares two JSON numbers by value, exactly and in linear time:
// 1, 1.0 and 10e-1 are equal, 2^53 and 2^53+1 are not. Nothing is expanded, so
// an exponent of any size costs only its digits.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := parseDecimal(a), parseDecimal(b)
	if x.zero() || y.zero() {
		return x.zero() && y.zero()
	}
	return x.exact && y.exact && x.neg == y.neg && x.exp == y.exp &&
		bytes.Equal(x.digits, y.digits)
}

// decimal is 0.digits × 10^exp, with neither a first nor a last digit of zero.
// It is not exact when the exponent is beyond 18 digits; such a number equals
// only its own spelling.
type decimal struct {
	neg    bool
	digits []byte
	exp    int64
	exact  bool
}

func (d decimal) zero() bool { return len(d.digits) == 0 }

func parseDecimal(v []byte) decimal {
	var d decimal
	if len(v) > 0 && v[0] == '-' {
		d.neg, v = true, v[1:]
	}
	d.exact = true
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		exp, err := strconv.ParseInt(string(v[i+1:]), 10, 64)
		const most = 1e18
		d.exp, d.exact = exp, err == nil && exp < most && exp > -most
		v = v[:i]
	}
	whole, frac, dotted := bytes.Cut(v, []byte("."))
	d.exp += int64(len(whole))
	d.digits = whole
	if dotted {
		d.digits = append(append(make([]byte, 0, len(v)), whole...), frac...)
	}
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits, d.exp = d.digits[1:], d.exp-1
	}
	d.digits = bytes.TrimRight(d.digits, "0")
	return d
}

// zeroNumber reports whether a JSON number is zero once it is a double, which is
// what every JavaScript host sees: 0, -0.0, 0e9 and 1e-400 are.
func zeroNumber(v []byte) bool {
	mantissa := v
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		mantissa = v[:i]
	}
	if !bytes.ContainsAny(mantissa, "123456789") {
		return true
	}
	const surelyRepresentable = 300 // digits after the point that cannot underflow
	if len(mantissa) == len(v) && len(v) < surelyRepresentable {
		return false
	}
	f, _ := strconv.ParseFloat(string(v), 64)
	return f == 0
}
