package conformance

// No wire makes a run expire, so these checks need one to be named that has
// (Config.ExpiredRun). They change nothing.
var retentionChecks = []check{
	must("retention.fork", "replay.md §Retention", "a fork of a run that has expired is refused, with 410 run_expired or 422", func(p *probe) {
		a := p.post(at(p.expired())+":fork", object{"mode": "replay"})
		if a.status == 422 {
			p.refused(a, 422)
			return
		}
		p.refused(a, 410, "run_expired")
	}).gated("replay"),

	should("retention.gone", "replay.md §Retention; errors.md §Registry", "every read of a run that has expired says so", func(p *probe) {
		id := p.expired()
		for _, path := range []string{"", "/events", "/events/poll?timeout=1"} {
			p.refused(p.get(at(id)+path), 410, "run_expired")
		}
	}),

	must("retention.listed", "runs.md §List", "a run that is not there any more is not listed", func(p *probe) {
		id := p.expired()
		if p.get(at(id)).status == 200 {
			p.blocked("the run %s is there", id)
		}
		for _, seen := range p.walk("limit=100") {
			p.want(seen != id, "the list shows the expired run %s", id)
		}
	}).gated("runList"),
}

// expired is the run that the operator of the suite knows to have expired.
func (p *probe) expired() string {
	if p.s.cfg.ExpiredRun == "" {
		p.inapplicable("no run is known that has expired (--expired-run)")
	}
	return p.s.cfg.ExpiredRun
}
