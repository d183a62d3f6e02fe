package expr

import "github.com/go-json-experiment/json/jsontext"

// Truthy is JavaScript's truthiness of a JSON value (RFC 0134): absent, null,
// false, "" and every number that is zero are false; all else is true, empty
// objects and arrays and the strings "0" and "false" included. JSON has no NaN.
func Truthy(v jsontext.Value) bool {
	v = trim(v)
	if len(v) == 0 {
		return false
	}
	switch v[0] {
	case 'n', 'f':
		return false
	case '"':
		return len(v) > 2
	case 't', '{', '[':
		return true
	}
	return !zeroNumber(v)
}
