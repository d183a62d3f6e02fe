package storetest

import (
	"slices"

	"github.com/fermata-run/fermata/internal/store"
)

func (e *env) workflow(tenant, id, version string) store.Workflow {
	return store.Workflow{
		Tenant: tenant, ID: id, Version: version, Digest: "sha256:" + id + version,
		Definition: []byte("{\"id\":\"" + id + "\",\"n\": 1.00,\"s\":\"\u2028\"}"), CreatedAt: e.now,
	}
}

// put adds a workflow that must be new, and returns it as the latest.
func (e *env) put(w store.Workflow) store.Workflow {
	e.Helper()
	added, err := e.s.Workflows().Put(e.ctx, w)
	e.ok(err)
	same(e, "added", added, true)
	w.Latest = true
	return w
}

func (e *env) getWorkflow(tenant, id, version string) store.Workflow {
	e.Helper()
	w, err := e.s.Workflows().Get(e.ctx, tenant, id, version)
	e.ok(err)
	return w
}

// workflowVersions are immutable; the one put last is the latest.
func workflowVersions(e *env) {
	w := e.s.Workflows()
	// All at the same time, and in no order that a version's name would give.
	nine := e.put(e.workflow("acme", "greet", "9"))
	ten := e.put(e.workflow("acme", "greet", "10"))
	two := e.put(e.workflow("acme", "greet", "2"))
	nine.Latest, ten.Latest = false, false
	same(e, "latest", e.getWorkflow("acme", "greet", ""), two)
	for _, v := range []store.Workflow{nine, ten, two} {
		same(e, "version", e.getWorkflow("acme", "greet", v.Version), v)
	}
	versions := func(want ...store.Workflow) {
		e.Helper()
		for i := range want {
			want[i].Definition = nil
		}
		got, err := w.Versions(e.ctx, "acme", "greet")
		e.ok(err)
		same(e, "versions", got, want)
	}
	versions(two, ten, nine)

	again := ten
	again.Definition, again.CreatedAt = []byte("{}"), e.tick()
	added, err := w.Put(e.ctx, again)
	e.ok(err)
	same(e, "added", added, false)
	ten.Latest, two.Latest = true, false
	same(e, "latest", e.getWorkflow("acme", "greet", ""), ten)
	versions(two, ten, nine)

	other := two
	other.Digest = "sha256:other"
	_, err = w.Put(e.ctx, other)
	e.fails(err, store.ErrExists)
	e.reopen()
	w = e.s.Workflows()
	same(e, "version", e.getWorkflow("acme", "greet", "2"), two)
	versions(two, ten, nine)
}

// workflowList is by id, one row per workflow, within the tenant.
func workflowList(e *env) {
	var want []store.Workflow
	for _, id := range []string{"zeta", "Beta", "alpha", "a:b", "a.b", "gamma_1"} {
		e.put(e.workflow("acme", id, "1"))
		want = append(want, e.put(e.workflow("acme", id, "2")))
	}
	slices.SortFunc(want, func(a, b store.Workflow) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	foreign := e.put(e.workflow("other", "alpha", "1"))
	for _, limit := range []int{1, 4, 6, 7} {
		var got []store.Workflow
		for after := ""; ; after = got[len(got)-1].ID {
			page, err := e.s.Workflows().List(e.ctx, "acme", after, limit)
			e.ok(err)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		same(e, "workflows", got, want)
	}
	got, err := e.s.Workflows().List(e.ctx, "other", "", 10)
	e.ok(err)
	same(e, "workflows", got, []store.Workflow{foreign})
	// Another tenant's workflow is not there.
	_, err = e.s.Workflows().Get(e.ctx, "other", "zeta", "1")
	e.fails(err, store.ErrNotFound)
	_, err = e.s.Workflows().Get(e.ctx, "other", "zeta", "")
	e.fails(err, store.ErrNotFound)
	_, err = e.s.Workflows().Versions(e.ctx, "other", "zeta")
	e.fails(err, store.ErrNotFound)
	e.fails(e.s.Workflows().Delete(e.ctx, "other", "zeta"), store.ErrNotFound)
}

// workflowDelete hides a workflow; runs that use a version can still read it.
func workflowDelete(e *env) {
	w := e.s.Workflows()
	one, two := e.put(e.workflow("acme", "greet", "1")), e.put(e.workflow("acme", "greet", "2"))
	keep := e.put(e.workflow("acme", "stay", "1"))
	e.ok(w.Delete(e.ctx, "acme", "greet"))
	_, err := w.Get(e.ctx, "acme", "greet", "")
	e.fails(err, store.ErrNotFound)
	list, err := w.List(e.ctx, "acme", "", 10)
	e.ok(err)
	same(e, "workflows", list, []store.Workflow{keep})
	one.Latest, two.Latest = false, false
	same(e, "version", e.getWorkflow("acme", "greet", "1"), one)
	same(e, "version", e.getWorkflow("acme", "greet", "2"), two)
	e.fails(w.Delete(e.ctx, "acme", "greet"), store.ErrNotFound)
	e.fails(w.Delete(e.ctx, "acme", "never"), store.ErrNotFound)

	// A deleted version stays what it was, and putting it again shows it again.
	bad := one
	bad.Digest = "sha256:other"
	_, err = w.Put(e.ctx, bad)
	e.fails(err, store.ErrExists)
	added, err := w.Put(e.ctx, one)
	e.ok(err)
	same(e, "added", added, false)
	one.Latest = true
	same(e, "latest", e.getWorkflow("acme", "greet", ""), one)
}
