package flow

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Access says which nodes may read and write a channel. A nil list is open to
// every node; an empty one to none.
type Access struct {
	Readers []string `json:"readers"`
	Writers []string `json:"writers"`
}

// ParseAccess reads a channel's access member: absent or "public" is open,
// "private" closed, an object lists node ids or type prefixes ending in *.
func ParseAccess(v jsontext.Value) (Access, error) {
	if len(v) == 0 {
		return Access{}, nil
	}
	if v.Kind() == '"' {
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return Access{}, err
		}
		switch s {
		case "public":
			return Access{}, nil
		case "private":
			return Access{Readers: []string{}, Writers: []string{}}, nil
		}
		return Access{}, errors.New(`want "public", "private" or {readers, writers}`)
	}
	var a Access
	if err := json.Unmarshal(v, &a, json.RejectUnknownMembers(true)); err != nil {
		return Access{}, errors.New("want {readers?: string[], writers?: string[]}")
	}
	return a, nil
}

// Admits reports whether a node is on a list.
func Admits(list []string, nodeID, typeID string) bool {
	if list == nil {
		return true
	}
	for _, entry := range list {
		if entry == nodeID || entry == typeID {
			return true
		}
		if prefix, wild := strings.CutSuffix(entry, "*"); wild && strings.HasPrefix(typeID, prefix) {
			return true
		}
	}
	return false
}
