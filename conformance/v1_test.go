package conformance_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

func withV1(c *fermata.Config) { c.V1 = true }

// target1 looks at version 1.
func target1(c *conformance.Config) { c.TargetMajor = 1 }

// The host with version 1 on meets every check of it, and the report counts nothing
// that was not measured.
func TestV1EmbeddedHostConforms(t *testing.T) {
	t.Parallel()
	r := look(t, serve(t, good(t, withV1)), target1)
	if len(r.Results) < 80 || r.TargetMajor != 1 || len(r.Profiles) != 0 {
		t.Errorf("%d results of major %d, %d profiles", len(r.Results), r.TargetMajor, len(r.Profiles))
	}
	for _, x := range r.Results {
		if x.Status != conformance.Pass {
			t.Errorf("%s %s: %s\n  %s", x.ID, x.Status, x.Reason, strings.Join(x.Evidence, "\n  "))
		}
		if !strings.HasPrefix(x.ID, "v1.") {
			t.Errorf("%s is no check of version 1", x.ID)
		}
	}
}

// Each broken host is caught by the check that is there for it, which passes on the good
// one; and there is no check that no broken host fails.
func TestV1BrokenHostsAreCaught(t *testing.T) {
	t.Parallel()
	host := good(t, withV1)
	sound := look(t, serve(t, host), target1)
	caught := map[string]bool{}
	seen := map[string]bool{}
	try := func(t *testing.T, check string, url string) {
		r := look(t, url, target1, func(c *conformance.Config) { c.Filter, c.Timeout = quoted(check), 6*time.Second })
		if got, ok := r.Result(check); !ok || got.Status != conformance.Fail {
			t.Errorf("not caught: %s %s %v", got.Status, got.Reason, got.Evidence)
		}
	}
	name := func(check, what string) string {
		caught[check] = true
		if x, _ := sound.Result(check); x.Status != conformance.Pass {
			t.Errorf("%s on the good host: %s %s", check, x.Status, x.Reason)
		}
		if seen[what] {
			t.Errorf("two broken hosts are called %q", what)
		}
		seen[what] = true
		return check + "/" + what
	}
	for _, m := range v1Mutations {
		t.Run(name(m.check, m.name), func(t *testing.T) {
			t.Parallel()
			try(t, m.check, serve(t, m.damage(host)))
		})
	}
	for _, m := range v1Deliveries {
		t.Run(name(m.check, m.name), func(t *testing.T) {
			t.Parallel()
			try(t, m.check, serve(t, newPostman(t, m.damage).behind(host)))
		})
	}
	for _, x := range sound.Results {
		if !caught[x.ID] {
			t.Errorf("no broken host fails %s", x.ID)
		}
	}
}

// Which version is looked at: the one that was named, else the one the host prefers. A
// host without version 1 is no host that breaks it.
func TestV1Target(t *testing.T) {
	t.Parallel()
	both, newer := serve(t, good(t, withV1)), serve(t, good(t))
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		env := func(name string) string { return map[string]string{"FERMATA_API_KEY": testKey}[name] }
		n := conformance.Command(context.Background(), args, env, &out, &errs)
		return n, out.String(), errs.String()
	}
	for _, c := range []struct {
		url, target, filter string
		code                int
	}{
		{both, "", `^v1\.discovery\.required$`, conformance.ExitOK}, {both, "1", `^v1\.discovery\.required$`, conformance.ExitOK},
		{both, "2", `^discovery\.document$`, conformance.ExitOK}, {both, "2", `^v1\.`, conformance.ExitUsage}, {both, "1", `^discovery\.`, conformance.ExitUsage},
		{newer, "", `^discovery\.document$`, conformance.ExitOK}, {newer, "1", `^v1\.discovery\.required$`, conformance.ExitUsage},
	} {
		args := []string{"--base-url", c.url, "--filter", c.filter}
		if c.target != "" {
			args = append(args, "--target-major", c.target)
		}
		if n, out, errs := run(args...); n != c.code {
			t.Errorf("%v: exit status %d\n%s%s", args, n, out, errs)
		}
	}
	if _, _, errs := run("--base-url", newer, "--target-major", "1"); !strings.Contains(errs, "does not serve major 1") || !strings.Contains(errs, "--v1") {
		t.Errorf("a host without version 1: %s", errs)
	}
	if n, _, errs := run("--base-url", both, "--target-major", "1", "--certify", "x", "--signing-key", "y"); n != conformance.ExitUsage || !strings.Contains(errs, "--target-major 2") {
		t.Errorf("certifying version 1: %d %s", n, errs)
	}
	r := look(t, both, target1, func(c *conformance.Config) { c.Filter = `^v1\.discovery\.` })
	if _, err := conformance.Certify(&r, conformance.Certificate{}); err == nil {
		t.Error("a bundle about version 1")
	}
}
