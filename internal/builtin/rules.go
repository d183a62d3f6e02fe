package builtin

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// rule is what one member of an interrupt's data must be.
type rule struct {
	name     string
	required bool
	check    func(field string, v json.RawMessage) error
}

// obey checks an object against its rules. It may hold no member without one.
func obey(field string, raw json.RawMessage, rules []rule) error {
	o, err := members(raw)
	if err != nil {
		return badMember(field, "must be an object, not %s", kind(raw))
	}
	for _, r := range rules {
		if r.required && o.get(r.name) == nil {
			return badMember(field+"."+r.name, "is missing")
		}
	}
	for _, p := range o {
		r := ruleFor(rules, p.name)
		if r == nil {
			return badMember(field+"."+p.name, "is not a member of this kind of interrupt")
		}
		if r.check == nil {
			continue
		}
		if err := r.check(field+"."+p.name, p.value); err != nil {
			return err
		}
	}
	return nil
}

func ruleFor(rules []rule, name string) *rule {
	for i := range rules {
		if rules[i].name == name {
			return &rules[i]
		}
	}
	return nil
}

func (o object) get(name string) json.RawMessage {
	for _, p := range o {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

func isA(what string) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error {
		if kind(v) != what {
			return badMember(field, "must be %s, not %s", what, kind(v))
		}
		return nil
	}
}

// isText checks a string of least to most characters; a most of 0 is no bound.
func isText(least, most int) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error {
		var s string
		if kind(v) != "a string" || json.Unmarshal(v, &s) != nil {
			return badMember(field, "must be a string, not %s", kind(v))
		}
		if n := utf8.RuneCountInString(s); n < least || most > 0 && n > most {
			return badMember(field, "has the wrong length")
		}
		return nil
	}
}

func isOneOf(allowed ...string) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error {
		var s string
		if kind(v) != "a string" || json.Unmarshal(v, &s) != nil {
			return badMember(field, "must be a string, not %s", kind(v))
		}
		_, err := choice(field, s, "", allowed...)
		return err
	}
}

func isWhole(least, most int64) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error {
		if kind(v) != "a number" {
			return badMember(field, "must be a number, not %s", kind(v))
		}
		_, err := number{v}.whole(field, 0, least, most)
		return err
	}
}

// isShare checks a number from 0 to 1.
func isShare(field string, v json.RawMessage) error {
	d, ok := parseDecimal(v)
	if kind(v) != "a number" || !ok {
		return badMember(field, "must be a number, not %s", kind(v))
	}
	one := decimal{digits: "1", exp: 1}
	if d.digits != "" && (d.negative || d.exp > 0) && d != one {
		return badMember(field, "must be from 0 to 1")
	}
	return nil
}

func isListOf(each func(string, json.RawMessage) error) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error {
		list, err := asList(field, v)
		if err != nil {
			return err
		}
		for i, item := range list {
			if err := each(fmt.Sprintf("%s[%d]", field, i), item); err != nil {
				return err
			}
		}
		return nil
	}
}

func isObjectOf(rules ...rule) func(string, json.RawMessage) error {
	return func(field string, v json.RawMessage) error { return obey(field, v, rules) }
}

func isActions(field string, v json.RawMessage) error {
	var list []string
	if kind(v) != "a list" || json.Unmarshal(v, &list) != nil {
		return badMember(field, "must be a list of actions")
	}
	return checkActions(field, list)
}

func isQuestions(field string, v json.RawMessage) error {
	each := isObjectOf(
		rule{"id", true, isText(1, 0)},
		rule{"question", true, isText(1, 0)},
		rule{"schema", false, isA("an object")},
	)
	if err := isListOf(each)(field, v); err != nil {
		return err
	}
	var list []question
	if err := json.Unmarshal(v, &list); err != nil {
		return badMember(field, "cannot be read")
	}
	return checkQuestions(field, list)
}
