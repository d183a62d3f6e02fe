package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// v1Registry lists the checks of version 1, in the order of the report. It is a table of
// its own: much is the same in both versions and hardly anything is told in the same words.
var v1Registry = slices.Concat(
	v1VersionChecks, v1DiscoveryChecks, v1ErrorChecks, v1CreateChecks, v1SnapshotChecks, v1CancelChecks, v1PauseChecks, v1ForkChecks,
	v1EventChecks, v1PollChecks, v1StreamChecks, v1InterruptChecks, v1TokenChecks, v1IdempotencyChecks, v1WebhookChecks, v1BundleChecks, v1FamilyChecks,
)

// v1Statuses are the ten statuses of a snapshot. waiting-clarification is none of them.
var v1Statuses = []string{
	"pending", "running", "paused", "cancelling", "waiting-approval", "waiting-input", "waiting-external", "completed", "failed", "cancelled",
}

// log1 reads a run's events by way of version 1: behind each page, until there is none.
func (p *probe) log1(id string) []event {
	var out []event
	query := "?timeout=1"
	for range 1000 {
		g, _ := p.poll(id, query)
		for _, doc := range g.Events {
			out = append(out, p.event(doc))
		}
		if len(g.Events) == 0 {
			return out
		}
		last := out[len(out)-1]
		if terminalType(last.Type) {
			return out
		}
		query = fmt.Sprintf("?timeout=1&lastSequence=%d", last.Sequence)
	}
	p.fail("the log of %s does not end", id)
	return nil
}

// closed wants a refusal in the closed envelope, as JSON.
func (p *probe) closed(a answer) {
	for name := range a.obj() {
		p.want(name == "error" || name == "message" || name == "details", "%s answered %s with the member %q at the root", a.line(), a.brief(), name)
	}
	p.want(a.code() != "" && a.str("message") != "", "%s answered %d without error and message: %.200s", a.line(), a.status, a.body)
	p.want(strings.HasPrefix(a.header.Get("Content-Type"), "application/json"), "%s refused as %q", a.line(), a.header.Get("Content-Type"))
	if d, ok := a.obj()["details"]; ok {
		p.want(len(d) > 0 && d[0] == '{', "%s: details is %.100s", a.line(), d)
	}
}

// refuses wants a refusal of one of the statuses with one of the codes.
func (p *probe) refuses(a answer, statuses []int, codes ...string) answer {
	p.want(slices.Contains(statuses, a.status), "%s answered %s, want %v %s", a.line(), a.brief(), statuses, strings.Join(codes, " or "))
	p.want(len(codes) == 0 || slices.Contains(codes, a.code()), "%s answered the code %q, want %s", a.line(), a.code(), strings.Join(codes, " or "))
	p.closed(a)
	return a
}

// bare wants an id without a tenant: opaque text of 1 to 128 characters.
func (p *probe) bare(id, what string) {
	p.want(len(id) >= 1 && len(id) <= 128, "%s is %q", what, id)
	p.want(!strings.ContainsAny(id, "/~"), "%s is bound to a tenant: %q", what, id)
}

func (p *probe) moment(v json.RawMessage, what string) time.Time {
	t, err := time.Parse(time.RFC3339, text(v))
	p.want(err == nil, "%s is %s, no RFC 3339 time", what, v)
	return t
}

// whole reads an integer; -1 if it is none.
func whole(v json.RawMessage) int64 {
	var n int64
	if len(v) == 0 || json.Unmarshal(v, &n) != nil {
		return -1
	}
	return n
}

func isTrue(v json.RawMessage) bool { return string(v) == "true" }

// has reports whether the host lists a major.
func (p *probe) has(major string) bool {
	return slices.Contains(majors(p.s.host.ProtocolVersions), major)
}

// younger is a hand that speaks version 2, where the host does.
func (p *probe) younger() *probe {
	if !p.has("2") {
		p.inapplicable("the host serves version 1 alone")
	}
	return p.as(2)
}
