package expr

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

var errTooDeep = errors.New("the values are nested too deeply to compare")

// Equal compares two JSON values structurally: numbers by their exact value,
// whatever their spelling, strings by what they say, objects whatever the order
// of their members. Values too large or too deep to compare are not equal, unless
// their bytes are the same.
func Equal(a, b jsontext.Value) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	m := newMeter()
	same, err := sameJSON(&m, a, b, 0)
	return same && err == nil
}

// sameJSON compares two JSON values structurally: numbers by their exact value,
// objects whatever the order of their members. What it walks is spent on m.
func sameJSON(m *meter, a, b []byte, depth int) (bool, error) {
	a, b = trim(a), trim(b)
	if len(a) == 0 || len(b) == 0 {
		return false, errors.New("a value is not JSON")
	}
	m.spend(min(len(a), len(b)))
	if bytes.Equal(a, b) {
		return true, nil
	}
	if depth > maxNesting {
		return false, errTooDeep
	}
	switch {
	case a[0] == '{' && b[0] == '{':
		return sameObject(m, a, b, depth)
	case a[0] == '[' && b[0] == '[':
		return sameArray(m, a, b, depth)
	case a[0] == '"' && b[0] == '"':
		return sameString(a, b), nil
	case numeric(a[0]) && numeric(b[0]):
		return sameNumber(a, b), nil
	}
	return false, nil // equal literals were equal bytes
}

func numeric(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func sameString(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false // they are not equal as bytes
	}
	s, ok1 := unquote(a)
	t, ok2 := unquote(b)
	return ok1 && ok2 && s == t
}

func sameArray(m *meter, a, b []byte, depth int) (bool, error) {
	m.spend(len(a) + len(b))
	for i, j := 1, 1; ; {
		x, ok := nextElement(a, i)
		y, also := nextElement(b, j)
		if !ok || !also {
			return ok == also, nil
		}
		if i, j = skipValue(a, x), skipValue(b, y); i < 0 || j < 0 {
			return false, errors.New("a value is not JSON")
		}
		if same, err := sameJSON(m, a[x:i], b[y:j], depth+1); !same || err != nil {
			return false, err
		}
	}
}

func sameObject(m *meter, a, b []byte, depth int) (bool, error) {
	m.spend(len(a) + len(b))
	x, y := indexMembers(a), indexMembers(b)
	if len(x.members) != len(y.members) {
		return false, nil
	}
	for _, member := range x.members {
		other := y.find(keyAt(a, int(member.key)))
		if other < 0 {
			return false, nil
		}
		same, err := sameJSON(m, x.value(member), y.value(y.members[other]), depth+1)
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}
