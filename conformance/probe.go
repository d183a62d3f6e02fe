package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/schema"
)

// suite is what the checks of one run share.
type suite struct {
	cfg   Config
	major int // the one that is looked at
	host  Host
	doc   map[string]json.RawMessage // discovery; nil if it cannot be read
	text  []byte                     // its bytes

	refusal string // the code that discovery was refused with

	mu        sync.Mutex
	seen      []answer // every answer so far, for the sweeps
	workflows map[role]workflow
	finished  map[string]*shared
	surveyed  sync.Once
}

// advertises reports whether discovery offers a family. Version 1 also has blocks that
// say they are not supported.
func (s *suite) advertises(family string) bool {
	v, ok := s.doc[family]
	return ok && (s.major != 1 || string(member(v, "supported")) != "false")
}

// facet reads a member of the discovery document by its path; false if it is
// not there.
func (s *suite) facet(into any, path ...string) bool {
	at := s.doc
	for i, name := range path {
		v, ok := at[name]
		if !ok {
			return false
		}
		if i == len(path)-1 {
			return json.Unmarshal(v, into) == nil
		}
		at = nil
		if json.Unmarshal(v, &at) != nil {
			return false
		}
	}
	return false
}

// probe is one check's hand on the host.
type probe struct {
	ctx context.Context
	s   *suite

	major int // speaks another than the suite's, if not 0

	asserted atomic.Int64 // statements about the host that were tested

	mu    sync.Mutex
	trail []string
	runs  []string // created here, cancelled afterwards

	receivers []*receiver // closed afterwards
}

// fail states what does not hold: that is an assertion, too.
func (p *probe) fail(format string, args ...any) {
	p.asserted.Add(1)
	panic(stop{Fail, fmt.Sprintf(format, args...)})
}

func (p *probe) blocked(format string, args ...any) {
	panic(stop{Blocked, fmt.Sprintf(format, args...)})
}

func (p *probe) inapplicable(format string, args ...any) {
	panic(stop{Inapplicable, fmt.Sprintf(format, args...)})
}

// want fails the check unless ok.
func (p *probe) want(ok bool, format string, args ...any) {
	if !ok {
		p.fail(format, args...)
	}
	p.asserted.Add(1)
}

// ok wants a status and, if a schema is named, a body that satisfies it.
func (p *probe) ok(a answer, status int, name string) answer {
	p.want(a.status == status, "%s answered %s, want %d", a.line(), a.brief(), status)
	if name != "" {
		p.valid(name, a.body, a.line())
	}
	return a
}

// valid wants a document that satisfies a schema of the wire.
func (p *probe) valid(name string, doc []byte, what string) {
	p.asserted.Add(1)
	if err := schema.Validate(name, doc); err != nil {
		var inv *schema.Invalid
		if !errors.As(err, &inv) && errors.Is(err, schema.ErrUnknown) {
			p.blocked("the suite has no schema %s", name)
		}
		p.fail("%s: the body does not fit %s: %v", what, name, err)
	}
}

// refused wants a refusal: the status, one of the codes, the closed envelope.
func (p *probe) refused(a answer, status int, codes ...string) answer {
	p.want(a.status == status, "%s answered %s, want %d %s", a.line(), a.brief(), status, strings.Join(codes, " or "))
	p.want(len(codes) == 0 || slices.Contains(codes, a.code()), "%s answered the code %q, want %s", a.line(), a.code(), strings.Join(codes, " or "))
	p.valid("error-envelope", a.body, a.line())
	return a
}

// note adds a line of evidence. The last few are kept: they are about what the
// check stopped at.
func (p *probe) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.trail); n > 0 && strings.TrimSuffix(p.trail[n-1], " (again)") == line {
		p.trail[n-1] = line + " (again)"
		return
	}
	p.trail = append(p.trail, line)
	if len(p.trail) > 8 {
		p.trail = p.trail[1:]
	}
}

func (p *probe) evidence() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.trail)
}

// cleanup cancels what the check has left running. Its answers are nobody's
// evidence: a run that is over already is as good.
func (p *probe) cleanup(ctx context.Context) {
	p.mu.Lock()
	runs, receivers := p.runs, p.receivers
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	quiet := &probe{ctx: ctx, s: p.s}
	for _, r := range receivers {
		r.close(quiet)
	}
	for _, id := range runs {
		_, _ = quiet.request("POST", at(id)+"/cancel", []byte(`{"reason":"conformance: the check is over"}`))
	}
}

// pause waits a moment; false once the check's time is over.
func (p *probe) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// same compares two JSON texts by value, numbers by their digits.
func same(a, b []byte) bool {
	x, errA := plain(a)
	y, errB := plain(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// plain writes JSON with sorted members and without white space.
func plain(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// compact takes white space out and leaves everything else as it is.
func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}
