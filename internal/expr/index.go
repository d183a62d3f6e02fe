package expr

// memberIndex knows where the members of one object start. It is built in one
// pass over the object and holds offsets, not copies, so that indexing a large
// object does not multiply its size.
type memberIndex struct {
	raw     []byte
	members []member
	finds   int
	byKey   map[string]int // only once an object of many members is asked often
}

type member struct{ key, val uint32 }

// An object with more members than smallObject gets a map, but only when it has
// been searched manyFinds times: one search of a large object is cheaper done
// by walking.
const (
	smallObject = 16
	manyFinds   = 4
)

func indexMembers(raw []byte) *memberIndex {
	x := &memberIndex{raw: raw}
	x.build()
	return x
}

func (x *memberIndex) build() {
	const few = 8
	x.members = make([]member, 0, few)
	for i := 1; ; {
		key, val, ok := nextMember(x.raw, i)
		if !ok {
			return
		}
		x.members = append(x.members, member{uint32(key), uint32(val)})
		if i = skipValue(x.raw, val); i < 0 {
			return
		}
	}
}

// find returns the position of the member called key, or -1.
func (x *memberIndex) find(key string) int {
	if x.finds++; len(x.members) > smallObject && x.finds > manyFinds {
		return x.findMapped(key)
	}
	for i, m := range x.members {
		if keyIs(x.raw, int(m.key), key) {
			return i
		}
	}
	return -1
}

func (x *memberIndex) findMapped(key string) int {
	if x.byKey == nil {
		x.byKey = make(map[string]int, len(x.members))
		for i := len(x.members) - 1; i >= 0; i-- { // the first of two wins, as in find
			x.byKey[keyAt(x.raw, int(x.members[i].key))] = i
		}
	}
	if i, ok := x.byKey[key]; ok {
		return i
	}
	return -1
}

func (x *memberIndex) value(m member) []byte { return valueAt(x.raw, int(m.val)) }

// valueAt is the value that starts at i, or nil.
func valueAt(raw []byte, i int) []byte {
	end := skipValue(raw, i)
	if end < 0 {
		return nil
	}
	return raw[i:end:end]
}

// indexElements returns where the elements of an array start.
func indexElements(raw []byte) []uint32 {
	var at []uint32
	for i := 1; ; {
		val, ok := nextElement(raw, i)
		if !ok {
			return at
		}
		if i = skipValue(raw, val); i < 0 {
			return at
		}
		at = append(at, uint32(val))
	}
}
