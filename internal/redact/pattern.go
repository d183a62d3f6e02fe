package redact

import (
	"regexp"
	"strings"
)

// Masked stands for a secret that is known by its form alone.
const Masked = "[hidden]"

// own are the forms of the host's own keys and tokens: an API key, an interrupt
// token of either major (that of v1 begins with {"runId": in base64), a webhook's secret, a
// master key, a sealed value.
const own = olderToken + `[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|fermata_[A-Za-z0-9_-]{16,}|ow2\.[A-Za-z0-9._~-]{16,}|whsec_[A-Za-z0-9+/=_-]{16,}|fermata-master-key-1:[A-Za-z0-9+/=]{16,}|fv1\.dk_[A-Za-z0-9_-]+\.[A-Za-z0-9+/=]{16,}`

const olderToken = "eyJydW5JZCI6"

// foreign are the forms of what others hand out as credentials: a signed token of three
// parts, and keys that begin with a mark which their makers chose to be found by.
const foreign = `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|\bsk-[A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{16,}|` +
	`\bgh[opsur]_[A-Za-z0-9]{16,}|\bxox[abprs]-[A-Za-z0-9-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`

var (
	ownForms = regexp.MustCompile(own)
	keyForms = regexp.MustCompile(own + `|` + foreign)
	// allForms adds what follows the name of a scheme as a credential does, and the
	// user information of a URL.
	allForms = regexp.MustCompile(own + `|` + foreign + `|(?i:\bbearer\s+)[A-Za-z0-9+/=._~-]{8,}|(?i:\bbasic\s+)[A-Za-z0-9+/=]{16,}|(?i:\b[a-z][a-z0-9+.-]*://)[^\s/@"'<>]+@`)
)

// marks are cheap signs of an own form.
var marks = []string{olderToken, "fermata_", "ow2.", "whsec_", "fermata-master-key-1:", "fv1.dk_"}

// foreignMarks are cheap signs of a foreign form.
var foreignMarks = []string{
	"eyJ", "sk-", "AIza", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "AKIA", "ASIA",
}

func mayHoldOwn(s string) bool {
	return holdsAny(s, marks)
}

// mayHoldForeign looks where a word begins: "task-" and "disk-" are everywhere.
func mayHoldForeign(s string) bool {
	for _, m := range foreignMarks {
		for at := 0; ; {
			i := strings.Index(s[at:], m)
			if i < 0 {
				break
			}
			i += at
			if i == 0 || !word(s[i-1]) {
				return true
			}
			at = i + len(m)
		}
	}
	return false
}

func word(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func holdsAny(s string, marks []string) bool {
	for _, m := range marks {
		if strings.Contains(s, m) {
			return true
		}
	}
	return false
}

// mayHoldScheme keeps the expression off the common case.
func mayHoldScheme(s string) bool {
	if strings.Contains(s, "://") && strings.Contains(s, "@") {
		return true
	}
	l := strings.ToLower(s)
	return strings.Contains(l, "bearer") || strings.Contains(l, "basic")
}

// Own takes the host's own keys and tokens out of a text.
func Own(s string) string {
	if !mayHoldOwn(s) {
		return s
	}
	return ownForms.ReplaceAllString(s, Masked)
}

// Keys takes the host's own keys and tokens out of a text, and whatever has the form
// of somebody else's. It is for what repeats a caller's words to it, such as a refusal:
// who put a key in the wrong place does not find it in a log of answers.
func Keys(s string) string {
	if !mayHoldOwn(s) && !mayHoldForeign(s) {
		return s
	}
	return keyForms.ReplaceAllString(s, Masked)
}

// Scrub takes everything out of a text that has the form of a secret. It is for
// what people read about the host, not for data: it would rather hide too much.
func Scrub(s string) string {
	if !mayHoldOwn(s) && !mayHoldForeign(s) && !mayHoldScheme(s) {
		return s
	}
	return allForms.ReplaceAllStringFunc(s, func(m string) string {
		if i := strings.Index(m, "://"); i >= 0 {
			return m[:i+3] + Masked + "@"
		}
		if i := strings.IndexAny(m, " \t"); i >= 0 && !mayHoldOwn(m[:i]) {
			return m[:i+1] + Masked
		}
		return Masked
	})
}
