package v1

import (
	"github.com/fermata-run/fermata/internal/event"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// idMember reports whether a member of a document of the host's holds an id that is
// tenant-bound in this major.
func idMember(name string) bool {
	return name == "runId" || name == "interruptId" || strings.HasSuffix(name, "RunId")
}

// bareIDs takes the tenant out of every id in a document of the host's own, at any
// depth. Members in except hold what a workflow or a caller has written, and stay
// byte for byte.
func bareIDs(v jsontext.Value, except ...string) (jsontext.Value, error) {
	switch v.Kind() {
	case '{':
		var m map[string]jsontext.Value
		if err := json.Unmarshal(v, &m); err != nil {
			return nil, err
		}
		for name, sub := range m {
			if slices.Contains(except, name) {
				continue
			}
			if sub.Kind() == '"' && idMember(name) {
				var id string
				if err := json.Unmarshal(sub, &id); err != nil {
					return nil, err
				}
				m[name] = event.Encode(bare(id))
				continue
			}
			clean, err := bareIDs(sub, except...)
			if err != nil {
				return nil, err
			}
			m[name] = clean
		}
		return event.Encode(m), nil
	case '[':
		var list []jsontext.Value
		if err := json.Unmarshal(v, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = bareIDs(list[i], except...); err != nil {
				return nil, err
			}
		}
		return event.Encode(list), nil
	}
	return v, nil
}
