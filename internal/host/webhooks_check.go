package host

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/webhook"
)

const (
	maxHookURL    = 2048 // bytes
	maxHookEvents = 256
	maxHookSecret = 512 // bytes
)

// checkWebhook holds a registration against what it may say, and makes its lists
// sets.
func checkWebhook(r *RegisterWebhook) error {
	switch {
	case r.URL == "":
		return problem.Invalid("url", "is required")
	case len(r.URL) > maxHookURL:
		return problem.Invalid("url", "has at most %d bytes", maxHookURL)
	case len(r.Events) == 0:
		return problem.Invalid("events", "names at least one event type")
	case len(r.Events) > maxHookEvents:
		return problem.Invalid("events", "names at most %d event types", maxHookEvents)
	case len(r.Secret) > maxHookSecret:
		return problem.Invalid("secret", "has at most %d bytes", maxHookSecret)
	case len(r.Tags) > maxTags:
		return problem.Invalid("tags", "at most %d tags are allowed", maxTags).With("limit", maxTags)
	}
	for i, t := range r.Events {
		if _, ok := event.Lookup(event.Type(t)); !ok {
			return problem.Invalid(fmt.Sprintf("events[%d]", i), "%q is no event type of the protocol", t)
		}
	}
	for i, t := range r.Tags {
		if utf8.RuneCountInString(t) > maxTagLength {
			return problem.Invalid(fmt.Sprintf("tags[%d]", i), "a tag has at most %d characters", maxTagLength).With("limit", maxTagLength)
		}
	}
	slices.Sort(r.Events)
	r.Events = slices.Compact(r.Events)
	return checkSchemes(r)
}

// checkSchemes holds the signature schemes a subscriber asks for against what this
// host signs with (spec v2 webhooks.md §Standard Webhooks, Opt-in).
func checkSchemes(r *RegisterWebhook) error {
	list := r.SignatureAlgorithms
	if list == nil {
		return nil
	}
	for i, s := range list {
		if !hasScheme(s) || slices.Contains(list[:i], s) {
			return problem.Invalid(fmt.Sprintf("signatureAlgorithms[%d]", i), "want each of %v at most once", webhookSchemes())
		}
	}
	if !slices.Contains(list, webhook.SchemeV1) {
		return problem.Invalid("signatureAlgorithms", "must hold %s", webhook.SchemeV1)
	}
	if slices.Contains(list, webhook.SchemeStandard) && webhook.StandardKey(r.Secret) == nil {
		return problem.Invalid("secret", "%s needs whsec_ and 24 to 64 bytes in base64", webhook.SchemeStandard)
	}
	return nil
}

// A verification has the host call an address of the caller's choice at once, so a
// tenant may have this many of them in so much time.
const (
	verifications     = 60
	verificationsTime = time.Minute
)

// tenantRate counts what tenants do within a time.
type tenantRate struct {
	mu    sync.Mutex
	since time.Time
	count map[string]int
}

// take reports whether a tenant may do it once more.
func (r *tenantRate) take(tenant string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil || now.Sub(r.since) >= verificationsTime || now.Before(r.since) {
		r.since, r.count = now, map[string]int{}
	}
	r.count[tenant]++
	return r.count[tenant] <= verifications
}
