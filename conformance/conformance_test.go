package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
	"github.com/fermata-run/fermata/internal/identity/idptest"
)

const testKey = "conformance-key-conformance-key-0123456789"

// known lists checks the embedded host does not pass yet, with the reason. The
// list is exact: a check that begins to pass must be taken off it.
var known = map[string]string{}

// blocked lists what cannot be measured on the embedded host, exactly.
var blocked = map[string]string{}

// A second tenant, and its key.
const (
	secondTenant = "second"
	secondKey    = "conformance-key-of-a-second-tenant-0123456789"
)

// lanes are lanes with an issuer of the test's.
func lanes(t *testing.T) fermata.Lanes {
	idp := idptest.New(t)
	return fermata.Lanes{
		PublicURL: "https://h.example/api", Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		OIDC: &fermata.Tokens{Audience: "https://h.example/api", Issuers: []fermata.Issuer{{Issuer: idp.URL, Tenant: fermata.DefaultTenant}}},
	}
}

// good is an embedded host with a data folder of its own.
func good(t *testing.T, change ...func(*fermata.Config)) http.Handler {
	t.Helper()
	dir := t.TempDir()
	shared, master := backend(t, dir)
	twoTenants(t, dir, shared, master)
	cfg := fermata.Config{
		Store: shared, StoreConnections: 8, MasterKey: master,
		DataDir: dir, BootstrapKey: testKey, EgressCAFile: trusted(t), Lanes: lanes(t),
		Audit:       fermata.Audit{CheckpointInterval: time.Second},
		AllowEgress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // where the suite's receivers are
		// The suite's receivers are on this machine; a host that nobody tests is told nothing of the kind.
		Webhooks: fermata.Webhooks{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: receivers().pool, MaxAttempts: 3, Backoff: 50 * time.Millisecond,
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	return start(t, cfg)
}

// twoTenants puts the keys of two tenants into a data folder.
func twoTenants(t *testing.T, dir, shared, master string) {
	t.Helper()
	h, err := fermata.Open(context.Background(), fermata.Config{DataDir: dir, Store: shared, MasterKey: master, BootstrapKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = h.Client().CreateTenant(ctx, secondTenant, "suite")
	if err == nil {
		_, err = h.RecoverKey(ctx, secondTenant, "suite", secondKey)
	}
	if err := errors.Join(err, h.Stop(ctx)); err != nil {
		t.Fatal(err)
	}
}

// start runs an embedded host until the test is over.
func start(t *testing.T, cfg fermata.Config) http.Handler {
	t.Helper()
	h, err := fermata.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return h.Handler()
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

func look(t *testing.T, url string, change ...func(*conformance.Config)) conformance.Report {
	t.Helper()
	cfg := conformance.Config{BaseURL: url, APIKey: testKey, OtherAPIKey: secondKey, Quick: true, Parallel: 8, ReceiverTLS: receivers().tls}
	for _, c := range change {
		c(&cfg)
	}
	r, err := conformance.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEmbeddedHostConforms(t *testing.T) {
	t.Parallel()
	r := look(t, serve(t, good(t)), func(c *conformance.Config) { c.Quick = testing.Short() })
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	failing, open := map[string]bool{}, map[string]bool{}
	for _, x := range r.Results {
		switch {
		case x.Status == conformance.Fail:
			failing[x.ID] = true
			if known[x.ID] == "" {
				t.Errorf("%s %s: %s\n  %s", x.ID, x.Level, x.Reason, strings.Join(x.Evidence, "\n  "))
			}
		case x.Status == conformance.Blocked:
			open[x.ID] = true
			if blocked[x.ID] == "" && !strings.HasPrefix(x.Reason, "left out") {
				t.Errorf("%s is blocked: %s", x.ID, x.Reason)
			}
		case x.Reason == "" && x.Status != conformance.Pass:
			t.Errorf("%s is %s without a reason", x.ID, x.Status)
		}
	}
	for id := range known {
		if !failing[id] {
			t.Errorf("%s does not fail any more: take it off the list", id)
		}
	}
	for id := range blocked {
		if !open[id] {
			t.Errorf("%s is not blocked any more: take it off the list", id)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	url := serve(t, good(t))
	only := func(c *conformance.Config) { c.Filter = `^(discovery|versioning)\.` }
	a, b := look(t, url, only), look(t, url, only)
	ids := func(r conformance.Report) (out []string) {
		for _, x := range r.Results {
			out = append(out, x.ID+" "+string(x.Status))
		}
		return out
	}
	if !slices.Equal(ids(a), ids(b)) {
		t.Errorf("two runs differ:\n%v\n%v", ids(a), ids(b))
	}
	if a.Totals.Pass == 0 || a.Totals.Pass+a.Totals.Fail+a.Totals.ShouldFail+a.Totals.Blocked+a.Totals.Inapplicable != len(a.Results) {
		t.Errorf("totals %+v of %d results", a.Totals, len(a.Results))
	}
	var enc bytes.Buffer
	if err := a.WriteJSON(&enc); err != nil {
		t.Fatal(err)
	}
	var back conformance.Report
	if err := json.Unmarshal(enc.Bytes(), &back); err != nil || len(back.Results) != len(a.Results) {
		t.Errorf("the JSON does not read back: %v", err)
	}
	verdicts := map[string]conformance.Verdict{}
	for _, p := range a.Profiles {
		verdicts[p.ID] = p.Verdict
	}
	want := map[string]conformance.Verdict{
		"openwop-discovery-core": conformance.Holds, "openwop-core-standard": conformance.Partial, "openwop-conformance-seams-v2": conformance.NotClaimed,
	}
	if !maps.Equal(verdicts, want) {
		t.Errorf("verdicts %v", verdicts)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	url := serve(t, good(t))
	env := func(name string) string {
		if name == "FERMATA_API_KEY" {
			return testKey
		}
		return ""
	}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		n := conformance.Command(context.Background(), args, env, &out, &errs)
		return n, out.String(), errs.String()
	}
	if n, out, errs := run("--base-url", url, "--filter", `^discovery\.document$`); n != conformance.ExitOK || !strings.Contains(out, "1 passed") {
		t.Errorf("%d %s %s", n, out, errs)
	}
	if n, out, _ := run("--base-url", url, "--filter", `^discovery\.document$`, "--json"); n != conformance.ExitOK || !json.Valid([]byte(out)) {
		t.Errorf("%d %s", n, out)
	}
	if n, _, _ := run("--base-url", url, "--filter", `^identity\.second-tenant$`); n != conformance.ExitBlocked {
		t.Errorf("a blocked check: exit status %d", n)
	}
	for _, args := range [][]string{{"--base-url", "nowhere"}, {"--base-url", url, "--filter", "("}, {"--target-major", "3"}, {"--unknown"}, {"more"}, {"--base-url", url, "--filter", "no-such-check"}, {"--base-url", "http://127.0.0.1:1"}} {
		if n, _, _ := run(args...); n != conformance.ExitUsage {
			t.Errorf("%v: exit status %d", args, n)
		}
	}
}

// Who asks for help has done nothing wrong, and is told of everything there is.
func TestCommandHelp(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string][]string{
		"": {"--base-url string", "--certify", "verify FILE", "keygen", "authority"}, "verify": {"--discovery", "xit status"},
		"keygen": {"--out"}, "authority": {"--out"},
	} {
		var out, errs bytes.Buffer
		args := append(strings.Fields(verb), "--help")
		if n := conformance.Command(context.Background(), args, func(string) string { return "" }, &out, &errs); n != conformance.ExitOK || errs.Len() > 0 {
			t.Errorf("%v: exit status %d, %s", args, n, &errs)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%v says nothing of %s:\n%s", args, w, &out)
			}
		}
	}
}

// quoted is a filter for one check.
func quoted(id string) string { return "^" + regexp.QuoteMeta(id) + "$" }
