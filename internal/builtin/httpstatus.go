package builtin

import (
	"encoding/json"
)

// expectSchema allows one status, one class such as "2xx", or a list of them.
const expectSchema = `{"$comment":"Default 2xx.","anyOf":[` + statusSchema +
	`,{"type":"array","minItems":1,"maxItems":50,"items":` + statusSchema + `}]}`

const statusSchema = `{"anyOf":[{"type":"integer","minimum":100,"maximum":599},` +
	`{"type":"string","pattern":"^([1-5]xx|any)$"}]}`

// expectation is the test a response's status must pass.
func expectation(raw json.RawMessage) (func(status int) bool, error) {
	if absent(raw) {
		raw = json.RawMessage(`"2xx"`)
	}
	list := []json.RawMessage{raw}
	if kind(raw) == "a list" {
		var err error
		if list, err = asList("expectStatus", raw); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 || len(list) > 50 {
		return nil, badMember("expectStatus", "must name 1 to 50 statuses")
	}
	var ranges [][2]int
	for _, v := range list {
		r, err := statusRange(v)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return func(status int) bool {
		for _, r := range ranges {
			if status >= r[0] && status <= r[1] {
				return true
			}
		}
		return false
	}, nil
}

func statusRange(v json.RawMessage) ([2]int, error) {
	if kind(v) == "a string" {
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return [2]int{}, badMember("expectStatus", "cannot be read")
		}
		if s == "any" {
			return [2]int{0, 999}, nil
		}
		if len(s) == 3 && s[0] >= '1' && s[0] <= '5' && s[1:] == "xx" {
			class := int(s[0]-'0') * 100
			return [2]int{class, class + 99}, nil
		}
		return [2]int{}, badMember("expectStatus", `must be a status, a class such as "2xx", or "any"`)
	}
	n, err := number{v}.whole("expectStatus", 0, 100, 599)
	return [2]int{int(n), int(n)}, err
}
