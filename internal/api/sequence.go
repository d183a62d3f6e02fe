package api

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Sequence reads a place in a log from a body: a number without a sign, a fraction or an
// exponent. One beyond what any log can have is such a place all the same, and nothing
// is there.
func Sequence(v jsontext.Value) (int64, bool) {
	if v.Kind() != '0' || bytes.ContainsAny(v, "-.eE") {
		return 0, false
	}
	var n int64
	for _, d := range v {
		if n > (1<<62)/10 {
			return 1 << 62, true
		}
		n = n*10 + int64(d-'0')
	}
	return n, true
}
