package effect

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
)

func listed(t *testing.T, seams ...Seam) *Registry {
	t.Helper()
	r := &Registry{}
	if err := r.Add(seams...); err != nil {
		t.Fatal(err)
	}
	return r
}

// Nothing passes by default, and what is forbidden cannot be permitted again.
func TestGuardDeniesByDefault(t *testing.T) {
	r := listed(t, Seam{Name: "core.http", Kind: node.SeamHTTP})
	ctx := context.Background()
	child, cancel := context.WithCancel(Permit(ctx, r))
	defer cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		seam   string
		code   string
		reason string
	}{
		"unmarked":                {ctx, "core.http", "egress_denied", "no-permission"},
		"permitted":               {Permit(ctx, r), "core.http", "", ""},
		"made of a permitted one": {child, "core.http", "", ""},
		"detached":                {context.WithoutCancel(child), "core.http", "", ""},
		"not listed":              {Permit(ctx, r), "acme.smtp", "egress_denied", "unlisted-seam"},
		"no registry":             {Permit(ctx, nil), "core.http", "egress_denied", "unlisted-seam"},
		"forbidden":               {Forbid(ctx), "core.http", "replay_source_missing", "replay"},
		"forbidden later":         {Forbid(Permit(ctx, r)), "core.http", "replay_source_missing", "replay"},
		"permitted in a replay":   {Permit(Forbid(ctx), r), "core.http", "replay_source_missing", "replay"},
	} {
		err := Guard(c.ctx, c.seam)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var e *node.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Retryable || e.Details["seam"] != c.seam || e.Details["reason"] != c.reason {
			t.Errorf("%s: %#v", name, err)
		}
		if _, ok := problem.Lookup(problem.Code(c.code)); !ok {
			t.Errorf("%s: the code %s is not registered", name, c.code)
		}
	}
	if Replayed(ctx, "x") != nil || Replayed(Permit(ctx, r), "x") != nil || Replayed(Forbid(ctx), "x") == nil {
		t.Error("Replayed concerns replays alone")
	}
}

func TestRegistry(t *testing.T) {
	r := listed(t, Seam{Name: "b.two", Kind: node.SeamSMTP, GuardedBy: "me"}, Seam{Name: "a.one", Kind: node.SeamOther, Note: "raw TCP"})
	if err := r.Add(Seam{Name: "b.two", Kind: node.SeamSMTP, GuardedBy: "me"}); err != nil {
		t.Errorf("the same seam again: %v", err)
	}
	for _, bad := range []Seam{
		{Name: "b.two", Kind: node.SeamQueue, GuardedBy: "me"}, {Name: "x", Kind: "ftp"}, {Name: "x"},
		{Name: "", Kind: node.SeamHTTP}, {Name: "a..b", Kind: node.SeamHTTP}, {Name: ".a", Kind: node.SeamHTTP},
		{Name: "a.", Kind: node.SeamHTTP}, {Name: "a b", Kind: node.SeamHTTP}, {Name: "x", Kind: node.SeamOther},
		{Name: "x", Kind: node.SeamHTTP, Note: string(make([]byte, 600))},
	} {
		if r.Add(bad) == nil {
			t.Errorf("%+v was listed", bad)
		}
	}
	all := r.All()
	if len(all) != 2 || all[0].Name != "a.one" || all[1].Name != "b.two" || all[0].GuardedBy != Guarded || all[1].GuardedBy != "me" {
		t.Errorf("%+v", all)
	}
	var none *Registry
	if none.Has("a.one") || none.All() != nil {
		t.Error("no registry lists something")
	}
}
