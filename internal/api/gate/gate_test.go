package gate

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/problem"
)

type lab struct {
	t   *testing.T
	g   *Gate
	now time.Time
}

func newLab(t *testing.T, c Config) *lab {
	l := &lab{t: t, now: time.Now()}
	c.Now = func() time.Time { return l.now }
	l.g = New(c)
	return l
}

func who(tenant, key string) identity.Caller {
	return identity.Caller{Subject: event.Subject{Tenant: tenant, Issuer: "keys", SubjectID: key}}
}

func request(stream bool, run string) *api.Request {
	return &api.Request{
		Request: httptest.NewRequest("GET", "/", nil), Route: &api.Route{Stream: stream}, Params: map[string]string{"runId": run},
	}
}

// enter wants the request let in, or refused by the named bound.
func (l *lab) enter(r *api.Request, c identity.Caller, bound string) (leave func()) {
	l.t.Helper()
	leave, err := l.g.Enter(r, c)
	l.refused(err, bound)
	return leave
}

func (l *lab) refused(err error, bound string) *problem.Error {
	l.t.Helper()
	var p *problem.Error
	errors.As(err, &p)
	switch {
	case bound == "" && err != nil:
		l.t.Fatalf("refused: %v", err)
	case bound != "" && (p == nil || p.Code != problem.RateLimited || p.Details["limit"] != bound || p.RetryAfter <= 0):
		l.t.Fatalf("%v, want it over %s", err, bound)
	}
	return p
}

func rate(t *testing.T, s string) limit.Rate {
	r, err := limit.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// One key at its rate slows neither another key of its tenant nor another tenant,
// and a tenant at its rate no other tenant.
func TestRates(t *testing.T) {
	l := newLab(t, Config{TenantRate: rate(t, "1/s:5"), KeyRate: rate(t, "1/s:3")})
	call := request(false, "")
	for range 3 {
		l.enter(call, who("acme", "a"), "")()
	}
	l.enter(call, who("acme", "a"), "key-rate")
	l.enter(call, who("acme", "b"), "")()
	l.enter(call, who("acme", "b"), "")()
	l.enter(call, who("acme", "b"), "tenant-rate")
	for range 3 {
		l.enter(call, who("beta", "a"), "")()
	}
	// Whoever comes when he was told to is let in.
	_, err := l.g.Enter(call, who("acme", "c"))
	wait := l.refused(err, "tenant-rate").RetryAfter
	l.now = l.now.Add(wait)
	l.enter(call, who("acme", "c"), "")()
}

func TestCallsAndStreams(t *testing.T) {
	l := newLab(t, Config{TenantCalls: 2, TenantStreams: 3, RunStreams: 2})
	call := request(false, "")
	first := l.enter(call, who("acme", "a"), "")
	l.enter(call, who("acme", "b"), "")
	l.enter(call, who("acme", "c"), "tenant-max-calls")
	l.enter(call, who("beta", "a"), "")
	first()
	l.enter(call, who("acme", "c"), "")

	one, other, odd := request(true, "acme~2Fone0one0one0one0"), request(true, "acme%2Ftwo0two0two0two0"), request(true, "?")
	a := l.enter(one, who("acme", "a"), "")
	l.enter(one, who("acme", "a"), "")
	l.enter(one, who("acme", "a"), "run-max-streams") // and gives back what it took of the tenant's
	b := l.enter(other, who("acme", "a"), "")
	l.enter(odd, who("acme", "a"), "tenant-max-streams")
	l.enter(one, who("beta", "a"), "") // another tenant's, who will not get to see the run
	a()
	b()
	l.enter(one, who("acme", "a"), "")()
	l.enter(odd, who("acme", "a"), "")()
	if n, _ := l.g.streams.Used(); n != 2 {
		t.Errorf("%d streams are open", n)
	}
}

func from(addr string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	return r
}

var (
	errNone  = problem.New(problem.Unauthenticated, "no")
	errFault = problem.New(problem.ServiceUnavailable, "no")
)

func TestFailures(t *testing.T) {
	l := newLab(t, Config{Failures: rate(t, "1/m:3")})
	guess := func(addr, credential string, outcome error, bound string) {
		t.Helper()
		r := from(addr)
		err := l.g.Knock(r, credential)
		l.refused(err, bound)
		if err == nil {
			if got := l.g.Known(r, credential, outcome); !errors.Is(got, outcome) && got != outcome {
				t.Fatalf("%v became %v", outcome, got)
			}
		}
	}
	guess("192.0.2.1:5", "good", nil, "")
	for i := range 3 {
		guess("192.0.2.1:5", fmt.Sprint("bad", i), errNone, "")
	}
	guess("192.0.2.1:99", "bad", errNone, "auth-failures") // another port of the same machine
	guess("[::ffff:192.0.2.1]:5", "bad", errNone, "auth-failures")
	guess("192.0.2.1:5", "new and perhaps good", nil, "auth-failures")
	guess("192.0.2.1:5", "good", nil, "") // not shut out with whoever guesses there
	guess("192.0.2.1:5", "", errNone, "") // no credential guesses nothing
	guess("192.0.2.2:5", "bad", errNone, "")
	for range 5 {
		guess("192.0.2.3:5", "fine", errFault, "") // the host's fault is no guess
	}
	// A /64 is one party, the next /64 another.
	for i := range 3 {
		guess(fmt.Sprintf("[2001:db8::%x]:5", i), "bad", errNone, "")
	}
	guess("[2001:db8::ffff%eth0]:5", "bad", errNone, "auth-failures")
	guess("[2001:db8:0:1::1]:5", "bad", errNone, "")
	l.now = l.now.Add(time.Minute)
	guess("192.0.2.1:5", "new and perhaps good", nil, "")
}

// What is remembered of credentials is bounded, and holds none of them.
func TestGoodIsBounded(t *testing.T) {
	g := newGood()
	for i := range 5 * maxGood {
		g.add(fmt.Sprint(i))
	}
	if n := len(g.gens[0]) + len(g.gens[1]); n > 2*maxGood {
		t.Errorf("%d are remembered", n)
	}
	if !g.has(fmt.Sprint(5*maxGood-1)) || g.has("0") {
		t.Error("the wrong ones are remembered")
	}
}
