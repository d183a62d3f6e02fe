package expr

import (
	"errors"
	"strings"
)

// The checks of a condition. left is the value its path led to; found is false
// when it led nowhere.

func (t *Test) equals(left []byte, found bool) (bool, error) {
	if !found {
		return isNull(t.right), nil
	}
	m := newMeter()
	return sameJSON(&m, left, t.right, 0)
}

func (t *Test) notEquals(left []byte, found bool) (bool, error) {
	same, err := t.equals(left, found)
	return !same, err
}

func (t *Test) contains(left []byte, found bool) (bool, error) {
	if !found {
		return false, nil
	}
	left = trim(left)
	switch kind(left) {
	case '"':
		s, ok1 := unquote(left)
		sub, ok2 := unquote(t.right)
		return ok1 && ok2 && strings.Contains(s, sub), nil
	case '{':
		key, ok := unquote(t.right)
		return ok && findMember(left, 0, key) >= 0, nil
	case '[':
		return t.containsElement(left)
	}
	return false, nil
}

func (t *Test) containsElement(array []byte) (bool, error) {
	m := newMeter()
	for i := 1; ; {
		start, ok := nextElement(array, i)
		if !ok {
			return false, nil
		}
		if i = skipValue(array, start); i < 0 {
			return false, nil
		}
		if same, err := sameJSON(&m, array[start:i], t.right, 0); same || err != nil {
			return same, err
		}
	}
}

func (t *Test) matches(left []byte, found bool) (bool, error) {
	if !found {
		return false, nil
	}
	s, ok := unquote(trim(left))
	if !ok {
		return false, nil // only a string can match
	}
	if t.pattern.work(len(s)) > maxPatternWork {
		return false, errors.New("the value is too long for this pattern")
	}
	return t.pattern.re.MatchString(s), nil
}

func (t *Test) truthy(left []byte, found bool) (bool, error) { return found && Truthy(left), nil }

func (t *Test) falsy(left []byte, found bool) (bool, error) { return !found || !Truthy(left), nil }
