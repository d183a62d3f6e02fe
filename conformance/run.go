package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	if err := s.target(ctx); err != nil {
		return Report{}, err
	}
	if err := s.discover(ctx); err != nil {
		return Report{}, err
	}
	if s.major == 1 && !s.servesV1() {
		return Report{}, errors.New("conformance: the host does not serve major 1: it advertises no 1.x version (a fermata host serves it with --v1 on)")
	}
	r := Report{
		Suite: SuiteName, Version: Version, TargetMajor: s.major, Filter: cfg.Filter,
		StartedAt: began.UTC().Truncate(time.Millisecond), Host: s.host, Profiles: []ProfileResult{}, discovery: s.text,
	}
	r.Results = s.runAll(ctx, s.selected(filter))
	if err := ctx.Err(); err != nil {
		return r, err
	}
	r.count()
	if s.major == 2 { // the profiles with a floor of scenarios are those of this major
		r.judge(s.advertises)
	}
	r.DurationMs = time.Since(began).Milliseconds()
	return r, nil
}

func (s *suite) selected(filter *regexp.Regexp) []*check {
	table := registry
	if s.major == 1 {
		table = v1Registry
	}
	var out []*check
	for i := range table {
		c := &table[i]
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
	a, err := p.send("GET", discoveryPath, nil, versionHeader, strconv.Itoa(s.major))
	if err != nil {
		return fmt.Errorf("conformance: the host does not answer: %w", err)
	}
	s.host = Host{BaseURL: s.cfg.BaseURL}
	var doc map[string]json.RawMessage
	if a.status != 200 || json.Unmarshal(a.body, &doc) != nil {
		s.refusal = a.code()
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

// target settles which major is looked at: the one that was named, else the one the
// host prefers. A host that names no version is looked at as one of major 2: the
// checks say what it lacks.
func (s *suite) target(ctx context.Context) error {
	if s.major = s.cfg.TargetMajor; s.major != 0 {
		return nil
	}
	s.major = 2
	bounded, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	p := &probe{ctx: bounded, s: s}
	a, err := p.request("GET", discoveryPath, nil, versionHeader, "")
	if err != nil {
		return fmt.Errorf("conformance: the host does not answer: %w", err)
	}
	switch v := or(a.str("preferredVersion"), a.str("protocolVersion")); {
	case strings.HasPrefix(v, "1."):
		s.major = 1
	case v != "" && !strings.HasPrefix(v, "2."):
		return fmt.Errorf("conformance: the host prefers version %q; majors 1 and 2 are covered", v)
	}
	return nil
}

// servesV1 reports whether discovery names a 1.x version. A document that cannot be
// read is the business of the checks.
func (s *suite) servesV1() bool {
	if s.doc == nil {
		return s.refusal == ""
	}
	var one string
	s.facet(&one, "protocolVersion")
	return slices.Contains(majors(append(slices.Clone(s.host.ProtocolVersions), one)), "1")
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
