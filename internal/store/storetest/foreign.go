package storetest

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// ask is one call of a method about a row of the given tenant. It reports whether
// the row was found, or the change took place.
type ask func(tenant string) (found bool, err error)

// property is a row of each kind, of one tenant.
type property struct {
	log       *log
	interrupt store.Interrupt
	hook      store.Subscription
	effect    store.Effect
	secret    store.Credential
	record    store.Record
}

func (e *env) property(tenant string) *property {
	e.Helper()
	p := &property{log: e.create(e.id(tenant))}
	p.interrupt = p.log.interrupt(1)
	a := p.log.next(note("asks"))
	a.Opened = []store.Interrupt{p.interrupt}
	e.ok(p.log.write(a))
	e.ok(e.s.Tenants().Add(e.ctx, store.Tenant{ID: tenant, State: store.TenantActive}))
	e.scheduled(tenant, "greet", "1", e.schedule("nightly", "x", e.now.Add(time.Hour)))
	e.ok(e.s.Keys().Add(e.ctx, e.key(tenant, "key", 1)))
	_, err := e.s.Members().Put(e.ctx, e.member(tenant, "mem", "ops"))
	e.ok(err)
	_, err = e.s.Members().PutRole(e.ctx, store.Role{Tenant: tenant, Name: "ops", Scopes: []string{"a:b"}})
	e.ok(err)
	e.ok(e.s.Audit().Append(e.ctx, &store.Draft{Chain: tenant, Fact: audit.Fact{
		At: e.now, Actor: audit.Actor{Kind: "host"}, Action: "a.b", Outcome: audit.Done, Target: audit.Target{Type: "x"},
	}}))
	p.secret = e.credential(tenant)
	e.ok(e.s.Credentials().Add(e.ctx, p.secret, 0))
	p.hook = e.subscribe(tenant, func(s *store.Subscription) { s.Major = 1 })
	p.effect = e.performs(e.wants(p.log.row.ID, "one", 1, "i1"), 1)
	p.record = e.granted(e.request(tenant, "createRun", "k", "d", "i1"), 1)
	return p
}

// rows is everything of a tenant that can be read.
func (e *env) rows(p *property) []any {
	e.Helper()
	tenant := p.log.row.ID.Tenant
	l, err := e.s.Runs().Load(e.ctx, p.log.row.ID)
	e.ok(err)
	key, err := e.s.Keys().ByID(e.ctx, tenant, "key")
	e.ok(err)
	member, err := e.s.Members().Get(e.ctx, tenant, "mem")
	e.ok(err)
	roles, err := e.s.Members().ListRoles(e.ctx, tenant)
	e.ok(err)
	flows, err := e.s.Workflows().List(e.ctx, tenant, "", 0)
	e.ok(err)
	hook, err := e.s.Webhooks().Get(e.ctx, tenant, p.hook.ID)
	e.ok(err)
	tries, err := e.s.Effects().Attempts(e.ctx, p.log.row.ID, 0, 0)
	e.ok(err)
	cred, err := e.s.Credentials().Get(e.ctx, tenant, p.secret.Ref)
	e.ok(err)
	return []any{e.schedules(tenant), cred, l.Run, len(l.Tail), key, member, roles, flows, hook, tries, e.inbox(tenant)}
}

// elsewhere are methods that name no row of a tenant, each with the reason.
var elsewhere = map[string]string{
	"Runs.Settle": "it names children by their own ids, and answers nothing; see settleInAStep",

	"Runs.Stage": "of a run that is yet to be, in the tenant it names", "Runs.Unstage": "of the host",

	"Ownership.Register": "of the host", "Ownership.Heartbeat": "of the host", "Ownership.Claim": "of the host",
	"Ownership.NextWake": "of the host", "Ownership.Unsettled": "of the host", "Ownership.Deregister": "of the host",

	"Schedules.Claim": "of the host", "Schedules.NextDue": "of the host",
	"Workflows.Put": "it adds to the tenant it names",
	"Keys.Add":      "it adds to the tenant it names", "Keys.ByHash": "whoever has the key is its holder",
	"Keys.Unkeyed": "of the host, at its start", "Keys.Count": "of the host, at its start",
	"Tenants.Add": "of the host's administrators", "Tenants.Get": "of the host's administrators", "Tenants.List": "of the host's administrators",
	"Tenants.Unsettled": "of the host", "Tenants.Update": "of the host's administrators",
	"Members.Put": "it adds to the tenant it names", "Members.PutRole": "it adds to the tenant it names",
	"Audit.Append": "it adds to the chain it names", "Audit.Anchor": "of the host", "Audit.Unanchored": "of the host",
	"Audit.Heads": "of the host", "Audit.Cut": "of the host", "Audit.LastCut": "of the host", "Audit.Checkpoints": "of the host",
	"Credentials.Add": "it adds to the tenant it names", "Credentials.PurgeEnded": "of the host",
	"Idempotency.Purge": "of the host", "Effects.Purge": "of the host", "Webhooks.Add": "it adds to the tenant it names",
	"Webhooks.PurgeDeadLetters": "of the host",
}

// own are interfaces whose every method is the host's own business.
var own = map[string]string{
	"Secrets": "they belong to no tenant", "Vault": "the host's rotation of its keys", "Deliveries": "a queue of the host's workers", "Retention": "the host's sweeps",
}

// foreign tries every method of every part of the store with ids of another
// tenant: nothing is found, nothing changes, and the same call with the right
// tenant does find it. A method that nobody has thought of fails the test.
func foreign(e *env) {
	e.register("i1")
	acme := e.property("acme")
	e.ok(e.s.Tenants().Add(e.ctx, store.Tenant{ID: "other", State: store.TenantActive}))
	asks := e.asks(acme)
	all := reflect.TypeFor[store.Store]()
	for i := range all.NumMethod() {
		part := all.Method(i)
		if part.Type.NumIn() > 0 || part.Name == "Close" || own[part.Name] != "" {
			continue
		}
		iface := part.Type.Out(0)
		for j := range iface.NumMethod() {
			name := part.Name + "." + iface.Method(j).Name
			if asks[name] == nil && elsewhere[name] == "" {
				e.Errorf("%s: nobody has tried it with another tenant's ids", name)
			}
		}
	}
	for name, ask := range asks {
		before := e.rows(acme)
		for _, tenant := range []string{"other", "nobody", "Acme", "acm", "acme~2F"} {
			found, err := ask(tenant)
			if found || err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrStale) {
				e.Errorf("%s of %q: found %v, %v", name, tenant, found, err)
			}
		}
		same(e, name+" changed", e.rows(acme), before)
	}
	for _, last := range []bool{false, true} {
		for n, ask := range asks {
			removes := strings.Contains(n, ".Remove") || strings.Contains(n, "Delete") || strings.Contains(n, "Idempotency") || n == "Effects.Finish"
			if removes != last {
				continue
			}
			if found, err := ask("acme"); !found || err != nil {
				e.Errorf("%s of its own tenant: found %v, %v", n, found, err)
			}
		}
	}
}

func (e *env) asks(p *property) map[string]ask {
	r, w, k, m, h := e.s.Runs(), e.s.Workflows(), e.s.Keys(), e.s.Members(), e.s.Webhooks()
	run := func(tenant string) ids.Run { return ids.Run{Tenant: tenant, Opaque: p.log.row.ID.Opaque} }
	done := func(err error) (bool, error) { return err == nil, err }
	record := func(tenant string) store.Record {
		x := p.record
		x.Tenant = tenant
		return x
	}
	return map[string]ask{
		"Runs.Append": func(t string) (bool, error) {
			a := p.log.next(note("more"))
			a.Row.ID.Tenant = t
			for i := range a.Events {
				a.Events[i].Run.Tenant = t
			}
			err := r.Append(e.ctx, a)
			if err == nil {
				p.log.took(a)
			}
			return done(err)
		},
		"Runs.Get":    func(t string) (bool, error) { x, err := r.Get(e.ctx, run(t)); return x.Seq > 0, err },
		"Runs.Load":   func(t string) (bool, error) { x, err := r.Load(e.ctx, run(t)); return len(x.Tail) > 0, err },
		"Runs.Events": func(t string) (bool, error) { _, x, err := r.Events(e.ctx, run(t), -1, 9, 0); return len(x) > 0, err },
		"Runs.List": func(t string) (bool, error) {
			x, err := r.List(e.ctx, store.ListQuery{Tenant: t, Limit: 9})
			return len(x) > 0, err
		},
		"Runs.CountActive": func(t string) (bool, error) { n, err := r.CountActive(e.ctx, t, 9); return n > 0, err },
		"Runs.Children": func(t string) (bool, error) {
			x, err := r.Children(e.ctx, run(t))
			return len(x) > 0 || t == "acme", err // it has none
		},
		"Runs.OpenInterrupts": func(t string) (bool, error) {
			if _, err := r.OpenInterrupts(e.ctx, t, p.interrupt.ID, 9); t != "acme" && !errors.Is(err, store.ErrNotFound) {
				return true, err // as a cursor it is not there either
			}
			x, err := r.OpenInterrupts(e.ctx, t, "", 9)
			return len(x) > 0, err
		},
		"Workflows.Get":      func(t string) (bool, error) { _, err := w.Get(e.ctx, t, "greet", "1"); return done(err) },
		"Workflows.List":     func(t string) (bool, error) { x, err := w.List(e.ctx, t, "", 9); return len(x) > 0, err },
		"Workflows.Versions": func(t string) (bool, error) { _, err := w.Versions(e.ctx, t, "greet"); return done(err) },
		"Workflows.Delete":   func(t string) (bool, error) { return done(w.Delete(e.ctx, t, "greet")) },
		"Schedules.List": func(t string) (bool, error) {
			x, err := e.s.Schedules().List(e.ctx, t, "", "", 9)
			return len(x) > 0, err
		},
		"Schedules.Move": func(t string) (bool, error) {
			x := store.Schedule{Tenant: t, Workflow: "greet", Trigger: "nightly", Revision: 1, LastRun: "stolen"}
			err := e.s.Schedules().Move(e.ctx, x)
			return err == nil || t == "acme" && errors.Is(err, store.ErrStale), ifForeign(t, err) // its workflow may have been hidden before
		},
		"Keys.ByID": func(t string) (bool, error) { _, err := k.ByID(e.ctx, t, "key"); return done(err) },
		"Keys.List": func(t string) (bool, error) { x, err := k.List(e.ctx, t, "", 9); return len(x) > 0, err },
		"Keys.Update": func(t string) (bool, error) {
			x := e.key("acme", "key", 1)
			x.Tenant, x.RevokedAt = t, e.now
			return done(k.Update(e.ctx, x))
		},
		"Keys.Touch": func(t string) (bool, error) {
			err := k.Touch(e.ctx, []store.Used{{Tenant: t, ID: "key", At: e.now}})
			x, _ := k.ByID(e.ctx, "acme", "key")
			return !x.UsedAt.IsZero(), err
		},
		"Members.Get":        func(t string) (bool, error) { _, err := m.Get(e.ctx, t, "mem"); return done(err) },
		"Members.List":       func(t string) (bool, error) { x, err := m.List(e.ctx, t, "", 9); return len(x) > 0, err },
		"Members.Remove":     func(t string) (bool, error) { return done(m.Remove(e.ctx, t, "mem")) },
		"Members.ListRoles":  func(t string) (bool, error) { x, err := m.ListRoles(e.ctx, t); return len(x) > 0, err },
		"Members.RemoveRole": func(t string) (bool, error) { return done(m.RemoveRole(e.ctx, t, "ops")) },
		"Members.Standing": func(t string) (bool, error) {
			x, err := m.Standing(e.ctx, t, "mem")
			return x.Member != nil || len(x.Roles) > 0, err
		},
		"Idempotency.Claim": func(t string) (bool, error) {
			if t != "acme" {
				return false, nil // it would claim a record of that tenant's own
			}
			x, _, err := e.s.Idempotency().Claim(e.ctx, record(t))
			p.record = x
			return x.Attempt > 0, err // whatever has become of it
		},
		"Idempotency.Finish": func(t string) (bool, error) {
			return recordHeld(t, e.s.Idempotency().Finish(e.ctx, outcome(record(t))))
		},
		"Idempotency.Release": func(t string) (bool, error) { return recordHeld(t, e.s.Idempotency().Release(e.ctx, record(t))) },
		"Idempotency.Forget":  func(t string) (bool, error) { return recordHeld(t, e.s.Idempotency().Forget(e.ctx, record(t))) },
		"Effects.Claim": func(t string) (bool, error) {
			if t != "acme" {
				return false, nil // it would claim an effect of that tenant's own
			}
			x, _, err := e.s.Effects().Claim(e.ctx, e.wants(p.log.row.ID, "one", 2, "i1"))
			p.effect = x
			return x.Claims > 0, err
		},
		"Effects.Finish": func(t string) (bool, error) {
			x := p.effect
			x.Tenant, x.State = t, store.EffectReleased
			err := e.s.Effects().Finish(e.ctx, x)
			return err == nil || t == "acme" && errors.Is(err, store.ErrStale), ifForeign(t, err)
		},
		"Effects.Attempts": func(t string) (bool, error) {
			x, err := e.s.Effects().Attempts(e.ctx, run(t), 0, 9)
			return len(x) > 0, err
		},
		"Credentials.Get": func(t string) (bool, error) {
			_, err := e.s.Credentials().Get(e.ctx, t, p.secret.Ref)
			return done(err)
		},
		"Credentials.List": func(t string) (bool, error) {
			x, err := e.s.Credentials().List(e.ctx, t, "", 9)
			return len(x) > 0, err
		},
		"Credentials.Rotate": func(t string) (bool, error) {
			return done(e.s.Credentials().Rotate(e.ctx, store.Rotation{Tenant: t, Ref: p.secret.Ref, From: p.secret.Version, Sealed: []byte("s"), At: e.now, Until: e.now}))
		},
		"Credentials.Remove": func(t string) (bool, error) { return done(e.s.Credentials().Remove(e.ctx, t, p.secret.Ref)) },
		"Audit.Head": func(t string) (bool, error) {
			x, err := e.s.Audit().Head(e.ctx, t)
			return x.Sequence > 0, err
		},
		"Audit.Entries": func(t string) (bool, error) {
			x, err := e.s.Audit().Entries(e.ctx, t, 0, 9)
			return len(x) > 0, err
		},
		"Audit.Latest": func(t string) (bool, error) {
			x, err := e.s.Audit().Latest(e.ctx, t, 0, 9)
			return len(x) > 0, err
		},
		"Webhooks.Get":    func(t string) (bool, error) { _, err := h.Get(e.ctx, t, p.hook.ID); return done(err) },
		"Webhooks.List":   func(t string) (bool, error) { x, err := h.List(e.ctx, t, "", 9); return len(x) > 0, err },
		"Webhooks.Remove": func(t string) (bool, error) { return done(h.Remove(e.ctx, t, p.hook.ID)) },
		"Webhooks.Rotate": func(t string) (bool, error) {
			return done(h.Rotate(e.ctx, t, p.hook.ID, "stolen", e.now, e.now.Add(time.Hour)))
		},
		"Webhooks.Enable": func(t string) (bool, error) { return done(h.Enable(e.ctx, t, p.hook.ID, e.now)) },
		"Webhooks.DeadLetters": func(t string) (bool, error) {
			x, err := h.DeadLetters(e.ctx, store.DeadLetterQuery{Tenant: t, Subscription: p.hook.ID, Now: e.now, Limit: 9})
			return len(x) > 0 || t == "acme", err // it has none
		},
	}
}

func outcome(r store.Record) store.Record {
	r.Outcome = &store.Outcome{Status: 200}
	return r
}

// recordHeld: of its own tenant a record may be finished, let go of or forgotten
// once, in whatever order; after that it is held no more, which is found as well.
func recordHeld(tenant string, err error) (bool, error) {
	if tenant == "acme" {
		return true, ifForeign(tenant, err)
	}
	return err == nil, err
}

func ifForeign(tenant string, err error) error {
	if tenant == "acme" && errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}
