package redact

import "encoding/json"

// Refusal takes secrets out of what a caller is told of an error: the tenant's known
// ones, and whatever has the form of a key, for a refusal repeats what the caller sent
// and is kept in more places than the request was.
func (r *Redactor) Refusal(tenant, message string, details map[string]any) (string, map[string]any) {
	s := r.of(tenant)
	clean := func(v string) string { return Keys(s.text(v)) }
	message = clean(message)
	if details == nil {
		return message, nil
	}
	b, err := json.Marshal(details)
	if err != nil {
		return message, omitted("the details cannot be written as JSON")
	}
	return message, decoded(details, b, rewrite(b, s, clean))
}

func omitted(why string) map[string]any { return map[string]any{"omitted": why} }
