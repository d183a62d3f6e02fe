package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Run looks at a host. The error is for a suite that could not begin: a bad
// configuration, or a host that is not there.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg, filter, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	s := &suite{cfg: cfg, workflows: map[role]workflow{}, finished: map[string]*shared{}}
	defer cfg.HTTPClient.CloseIdleConnections()
	if err := s.discover(ctx); err != nil {
		return Report{}, err
	}
	// A host that names no version is looked at: the checks say what it lacks.
	if v := s.host.PreferredVersion; cfg.TargetMajor == 0 && v != "" && v[0] != '1' && v[0] != '2' {
		return Report{}, fmt.Errorf("conformance: the host prefers version %q; only major 2 is covered", v)
	}
	r := Report{
		Suite: SuiteName, Version: Version, TargetMajor: 2, Filter: cfg.Filter,
		StartedAt: began.UTC().Truncate(time.Millisecond), Host: s.host, discovery: s.text,
	}
	r.Results = s.runAll(ctx, selected(filter))
	if err := ctx.Err(); err != nil {
		return r, err
	}
	r.count()
	r.judge(s.advertises)
	r.DurationMs = time.Since(began).Milliseconds()
	return r, nil
}

func selected(filter *regexp.Regexp) []*check {
	var out []*check
	for i := range registry {
		c := &registry[i]
		if filter.MatchString(c.id) || c.scenario != "" && filter.MatchString(c.scenario) {
			out = append(out, c)
		}
	}
	return out
}

// runAll runs the checks, a few at a time: first those that ask the host, then
// those that look at the answers. Results keep the order of the registry.
func (s *suite) runAll(ctx context.Context, checks []*check) []Result {
	results := make([]Result, len(checks))
	for _, sweep := range []bool{false, true} {
		var wg sync.WaitGroup
		slots := make(chan struct{}, s.cfg.Parallel)
		for i, c := range checks {
			if c.sweep != sweep {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				results[i] = s.runOne(ctx, c)
				s.tell(results[i])
			})
		}
		wg.Wait()
	}
	return results
}

func (s *suite) tell(r Result) {
	if s.cfg.Log != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cfg.Log(r)
	}
}

// stop is what ends a check's function early.
type stop struct {
	status Status
	reason string
}

func (s *suite) runOne(ctx context.Context, c *check) (r Result) {
	r = Result{ID: c.id, Scenario: c.scenario, Requirement: c.requirement(), Level: c.level}
	if status, reason := s.gate(c); status != "" {
		r.Status, r.Reason = status, reason
		return r
	}
	// A check that waits on purpose is given the time to.
	limit := s.cfg.Timeout
	if c.slow {
		limit += s.cfg.Patience
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p := &probe{ctx: bounded, s: s}
	defer p.cleanup(ctx)
	defer func() {
		r.Evidence, r.Assertions = p.evidence(), int(p.asserted.Load())
		switch end := recover().(type) {
		case nil:
			r.Status = Pass
			if r.Assertions == 0 {
				r.Status, r.Reason = Blocked, "the check ended without having tested anything"
			}
		case stop:
			r.Status, r.Reason = end.status, end.reason
		default:
			// A fault of the suite says nothing about the host.
			r.Status, r.Reason = Blocked, fmt.Sprintf("the check itself broke: %v", end)
		}
	}()
	c.run(p)
	return r
}

func (s *suite) gate(c *check) (Status, string) {
	if len(c.needs) > 0 && s.doc == nil {
		return Blocked, "discovery could not be read, so it is not known what the host advertises"
	}
	for _, f := range c.needs {
		if !s.advertises(f) {
			return Inapplicable, "discovery does not advertise " + f
		}
	}
	if c.slow && s.cfg.Quick {
		return Blocked, "left out: it has to wait, and a quick run was asked for"
	}
	return "", ""
}

// discover reads what the host says about itself. A document that cannot be
// read leaves doc nil: the checks of discovery then say what is wrong.
func (s *suite) discover(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	p := &probe{ctx: bounded, s: s}
	a, err := p.send("GET", discoveryPath, nil)
	if err != nil {
		return fmt.Errorf("conformance: the host does not answer: %w", err)
	}
	s.host = Host{BaseURL: s.cfg.BaseURL}
	var doc map[string]json.RawMessage
	if a.status != 200 || json.Unmarshal(a.body, &doc) != nil {
		return nil
	}
	s.doc, s.text, s.host.DiscoverySHA256 = doc, a.body, hexSum(a.body)
	var about struct {
		Implementation   struct{ Name, Version, Vendor string }
		ProtocolVersions []string
		PreferredVersion string
	}
	_ = json.Unmarshal(a.body, &about) // members of a wrong type are the schema's business
	s.host.Name, s.host.Version, s.host.Vendor = about.Implementation.Name, about.Implementation.Version, about.Implementation.Vendor
	s.host.ProtocolVersions, s.host.PreferredVersion = about.ProtocolVersions, about.PreferredVersion
	s.host.Families = familiesOf(doc)
	s.introduce(p)
	return nil
}

// introduce asks a host for its build and for what its operator has loosened,
// which are no members of discovery. A host that has no such page is no worse.
func (s *suite) introduce(p *probe) {
	a, err := p.request("GET", "/host/fermata/host", nil)
	var about struct {
		Build       *Build
		Relaxations []Relaxation
	}
	if err == nil && a.status == 200 && json.Unmarshal(a.body, &about) == nil {
		s.host.Build, s.host.Relaxations = about.Build, about.Relaxations
	}
}
