package storetest

import (
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
)

func (e *env) member(tenant, id string, roles ...string) store.Member {
	return store.Member{
		Tenant: tenant, ID: id, Issuer: "https://idp.example/a b", SubjectID: "s-" + id, Name: "Ann \"\u20ac\"", Workspace: "eu",
		Groups: []string{"finance"}, Roles: append([]string{}, roles...), CreatedAt: e.now,
	}
}

func memberRecords(e *env) {
	m := e.s.Members()
	put := func(x store.Member, added bool) {
		e.Helper()
		got, err := m.Put(e.ctx, x)
		e.ok(err)
		same(e, "added", got, added)
	}
	one, two, foreign := e.member("acme", "a", "admin"), e.member("acme", "b"), e.member("other", "a", "viewer")
	put(one, true)
	put(two, true)
	put(foreign, true)
	late := one
	late.CreatedAt, late.Roles, late.Groups, late.Name = e.tick(), []string{"viewer"}, []string{}, ""
	put(late, false)
	late.CreatedAt = one.CreatedAt // the first one stays
	e.reopen()
	m = e.s.Members()
	for _, want := range []store.Member{late, two, foreign} {
		got, err := m.Get(e.ctx, want.Tenant, want.ID)
		e.ok(err)
		same(e, "member", got, want)
	}
	for after, want := range map[string][]store.Member{"": {late, two}, "a": {two}, "b": nil} {
		got, err := m.List(e.ctx, "acme", after, 5)
		e.ok(err)
		same(e, "members", got, want)
	}
	got, err := m.List(e.ctx, "acme", "", 1)
	e.ok(err)
	same(e, "members", got, []store.Member{late})
	e.fails(m.Remove(e.ctx, "other", "b"), store.ErrNotFound)
	e.ok(m.Remove(e.ctx, "acme", "a"))
	e.fails(m.Remove(e.ctx, "acme", "a"), store.ErrNotFound)
	_, err = m.Get(e.ctx, "acme", "a")
	e.fails(err, store.ErrNotFound)
	_, err = m.Get(e.ctx, "other", "a")
	e.ok(err)

	roles := func(tenant string, want ...store.Role) {
		e.Helper()
		got, err := m.ListRoles(e.ctx, tenant)
		e.ok(err)
		same(e, "roles", got, want)
	}
	ops, desk := store.Role{Tenant: "acme", Name: "ops", Scopes: []string{"runs:*"}, CreatedAt: e.now}, store.Role{Tenant: "acme", Name: "desk", Scopes: []string{}, CreatedAt: e.now}
	for _, r := range []store.Role{ops, desk} {
		added, err := m.PutRole(e.ctx, r)
		e.ok(err)
		same(e, "added", added, true)
	}
	ops.Scopes = []string{"runs:read"}
	again := ops
	again.CreatedAt = e.tick()
	added, err := m.PutRole(e.ctx, again)
	e.ok(err)
	same(e, "added", added, false)
	roles("acme", desk, ops)
	roles("other")
	e.fails(m.RemoveRole(e.ctx, "other", "ops"), store.ErrNotFound)
	e.ok(m.RemoveRole(e.ctx, "acme", "ops"))
	e.fails(m.RemoveRole(e.ctx, "acme", "ops"), store.ErrNotFound)
	roles("acme", desk)
}

// standing follows each change at once.
func standing(e *env) {
	m, t := e.s.Members(), e.s.Tenants()
	see := func(want store.Standing) {
		e.Helper()
		for range 2 { // the second may be answered from memory
			got, err := m.Standing(e.ctx, "acme", "a")
			e.ok(err)
			same(e, "standing", got, want)
		}
	}
	_, err := m.Standing(e.ctx, "acme", "a")
	e.fails(err, store.ErrNotFound)
	acme := store.Tenant{ID: "acme", State: store.TenantActive, CreatedAt: e.now}
	e.ok(t.Add(e.ctx, acme))
	see(store.Standing{Tenant: acme})

	one := e.member("acme", "a", "ops", "viewer")
	put := func(x store.Member) {
		_, err := m.Put(e.ctx, x)
		e.ok(err)
	}
	role := func(tenant, name string, scopes ...string) store.Role {
		r := store.Role{Tenant: tenant, Name: name, Scopes: scopes, CreatedAt: e.now}
		_, err := m.PutRole(e.ctx, r)
		e.ok(err)
		return r
	}
	put(one)
	put(e.member("other", "a", "ops"))
	see(store.Standing{Tenant: acme, Member: &one})
	ops := role("acme", "ops", "runs:read")
	role("acme", "desk", "runs:cancel")
	role("other", "viewer", "*")
	see(store.Standing{Tenant: acme, Member: &one, Roles: []store.Role{ops}})
	ops = role("acme", "ops", "runs:*")
	see(store.Standing{Tenant: acme, Member: &one, Roles: []store.Role{ops}})
	acme.State = store.TenantSuspended
	e.ok(t.Update(e.ctx, acme))
	acme.Version++
	see(store.Standing{Tenant: acme, Member: &one, Roles: []store.Role{ops}})
	e.ok(m.RemoveRole(e.ctx, "acme", "ops"))
	see(store.Standing{Tenant: acme, Member: &one})
	e.ok(m.Remove(e.ctx, "acme", "a"))
	see(store.Standing{Tenant: acme})
}

// workspaceList: what a workspace lists is its own, whatever the other filters.
func workspaceList(e *env) {
	var want []string
	for i, ws := range []string{"eu", "", "us", "eu", "eu", "EU"} {
		tenant := "acme"
		if i == 4 {
			tenant = "other"
		}
		id := e.id(tenant)
		row := store.Run{ID: id, WorkflowID: "w", WorkflowVersion: "1", Status: "running", CreatedAt: e.now, Workspace: ws}
		ap := &store.Append{Create: true, Row: row, Events: []event.Event{{Type: event.RunStarted, Run: id, Time: e.now, Payload: []byte("{}")}}}
		e.ok(e.s.Runs().Append(e.ctx, ap))
		if ws == "eu" && tenant == "acme" {
			want = append([]string{id.Opaque}, want...)
		}
		got, err := e.s.Runs().Get(e.ctx, id)
		e.ok(err)
		same(e, "workspace", got.Workspace, ws)
	}
	for _, q := range []store.ListQuery{{}, {Status: "running"}, {WorkflowID: "w"}, {Status: "running", WorkflowID: "w"}} {
		q.Tenant, q.Workspace = "acme", "eu"
		for _, limit := range []int{1, 2, 5} {
			var got []string
			for q.Limit, q.Before = limit, ""; ; {
				rows, err := e.s.Runs().List(e.ctx, q)
				e.ok(err)
				for _, r := range rows {
					got = append(got, r.ID.Opaque)
				}
				if len(rows) < limit {
					break
				}
				q.Before = rows[len(rows)-1].ID.Opaque
			}
			same(e, "runs", strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	none := []store.ListQuery{{Status: "completed"}, {Status: "completed", WorkflowID: "w"}, {WorkflowID: "x"}, {Status: "running", WorkflowID: "x"}, {Workspace: "asia"}}
	for _, q := range none {
		q.Tenant = "acme"
		if q.Workspace == "" {
			q.Workspace = "eu"
		}
		rows, err := e.s.Runs().List(e.ctx, q)
		e.ok(err)
		same(e, "runs", len(rows), 0)
	}
	done := store.Run{ID: e.id("acme"), WorkflowID: "w", WorkflowVersion: "1", Status: "completed", CreatedAt: e.now, CompletedAt: e.now, Workspace: "eu"}
	e.ok(e.s.Runs().Append(e.ctx, &store.Append{Create: true, Row: done, Events: []event.Event{{Type: event.RunStarted, Run: done.ID, Time: e.now, Payload: []byte("{}")}}}))
	for n, queries := range map[int][]store.ListQuery{
		0: {{Status: "completed", WorkflowID: "x"}, {Status: "failed", WorkflowID: "w"}},
		1: {{Status: "completed"}, {Status: "completed", WorkflowID: "w"}},
		2: {{Status: "running"}, {Status: "running", WorkflowID: "w"}},
		3: {{}, {WorkflowID: "w"}},
	} {
		for _, q := range queries {
			q.Tenant, q.Workspace = "acme", "eu"
			rows, err := e.s.Runs().List(e.ctx, q)
			e.ok(err)
			same(e, "runs beside one that is over", len(rows), n)
		}
	}
}
