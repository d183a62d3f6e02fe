package builtin

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// decimal is the exact value of a JSON number: 0.digits × 10^exp, without a zero
// at either end of digits. Zero has no digits. Two numbers are equal if their
// decimals are, however they were written and however large they are.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

// parseDecimal reads the text of a number. An exponent of more than nine digits
// is no number we deal with.
func parseDecimal(raw json.RawMessage) (decimal, bool) {
	s := string(bytes.TrimSpace(raw))
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent, scaled := cutExponent(s)
	if scaled {
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return decimal{}, false
		}
		d.exp = e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if whole == "" || strings.Trim(all, "0123456789") != "" {
		return decimal{}, false
	}
	d.exp += int64(len(whole))
	d.digits = strings.TrimLeft(all, "0")
	d.exp -= int64(len(all) - len(d.digits))
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

func cutExponent(s string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// int64 returns the number if it is whole and has at most 18 digits.
func (d decimal) int64() (int64, bool) {
	if d.digits == "" {
		return 0, true
	}
	if d.exp < int64(len(d.digits)) || d.exp > 18 {
		return 0, false
	}
	v, err := strconv.ParseInt(d.digits+strings.Repeat("0", int(d.exp)-len(d.digits)), 10, 64)
	if err != nil {
		return 0, false
	}
	if d.negative {
		v = -v
	}
	return v, true
}

// equal reports whether two JSON values are the same: objects whatever the order
// of their members, numbers by their exact value.
func equal(a, b json.RawMessage) bool {
	x, errX := tree(a)
	y, errY := tree(b)
	return errX == nil && errY == nil && same(x, y)
}

func tree(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(orNull(raw)))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func same(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, ok := y[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}

func sameNumber(a, b json.Number) bool {
	x, okX := parseDecimal(json.RawMessage(a))
	y, okY := parseDecimal(json.RawMessage(b))
	if !okX || !okY {
		return a == b
	}
	return x == y
}
