package expr

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// decode gives one raw JSON value to CEL. Scalars are decoded, containers are
// wrapped and stay raw until something asks for a member.
func decode(m *meter, v []byte) ref.Val {
	switch kind(v) {
	case '{':
		return &object{raw: v, meter: m}
	case '[':
		return &array{raw: v, meter: m}
	case '"':
		m.spend(len(v))
		if s, ok := unquote(v); ok {
			return types.String(s)
		}
		return types.NewErr("a string is not valid JSON")
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	case 0:
		return types.NewErr("a value is not JSON")
	}
	m.spend(len(v))
	return decodeNumber(v)
}

// raw is a container that is still JSON text. Its size for CEL's cost is a tenth
// of its bytes, the price CEL puts on handling a string of that length.
type raw interface {
	ref.Val
	json() []byte
}

// worthKeeping tells which decoded values their container keeps: containers, so
// that the index of each is built once however often a loop goes through it, and
// long strings.
func worthKeeping(v ref.Val) bool {
	switch v := v.(type) {
	case raw:
		return true
	case types.String:
		return len(v) > 256
	}
	return false
}

func rawSize(v []byte) uint32 { return uint32(min(len(v)/10+1, 1<<31)) }

// convert is ref.Val's ConvertToType for a container: only its own type and the
// type of types are open to it, as for CEL's own containers.
func convert(v ref.Val, to ref.Type) ref.Val {
	switch to {
	case v.Type():
		return v
	case types.TypeType:
		return v.Type().(*types.Type)
	}
	return types.NewErr("type conversion error from '%s' to '%s'", v.Type(), to)
}

// toNative is ref.Val's ConvertToNative. Nothing in this package needs a Go
// value, so a container only ever converts to itself.
func toNative(v ref.Val, to reflect.Type) (any, error) {
	if reflect.TypeOf(v).AssignableTo(to) {
		return v, nil
	}
	return nil, fmt.Errorf("a %s of JSON has no native form", v.Type())
}

// sameRaw compares two containers that are still text, without decoding them.
func sameRaw(m *meter, a, b []byte) ref.Val {
	same, err := sameJSON(m, a, b, 0)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(same)
}
