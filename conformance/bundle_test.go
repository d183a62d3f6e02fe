package conformance_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

// certified is a host that publishes a signing key, and a whole report on it.
type certified struct {
	report    conformance.Report
	discovery []byte
	signer    *conformance.Signer
	public    ed25519.PublicKey
}

var certifiedOnce sync.Once
var certifiedHost certified

func certifiedReport(t *testing.T) certified {
	t.Helper()
	certifiedOnce.Do(func() {
		dir := t.TempDir()
		private, public, err := conformance.NewSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		keys := filepath.Join(dir, "keys.pem")
		if err := os.WriteFile(keys, public, 0o600); err != nil {
			t.Fatal(err)
		}
		twoTenants(t, dir, "", "")
		h := start(t, fermata.Config{DataDir: dir, BootstrapKey: testKey, SigningKeys: keys, EgressCAFile: trusted(t),
			Webhooks: fermata.Webhooks{
				Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: receivers().pool, MaxAttempts: 3, Backoff: 50 * time.Millisecond,
			},
			AllowEgress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}) // where the suite's receivers are
		url := serve(t, h)
		c := &certifiedHost
		c.report = look(t, url, func(c *conformance.Config) { c.Quick = false })
		if c.signer, err = conformance.ReadSigner(private, ""); err != nil {
			t.Fatal(err)
		}
		c.public, _ = conformance.ReadPublicKey(public)
		c.discovery = fetch(t, h, "/.well-known/openwop")
	})
	if c := certifiedHost; c.signer == nil {
		t.Fatal("there is no report")
	}
	return certifiedHost
}

func bundle(t *testing.T, c certified, change ...func(*conformance.Certificate)) map[string]any {
	t.Helper()
	cert := conformance.Certificate{Signer: c.signer, Secrets: []string{testKey}}
	for _, f := range change {
		f(&cert)
	}
	b, err := conformance.Certify(&c.report, cert)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), testKey) {
		t.Error("the bundle holds the API key")
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func verdict(t *testing.T, doc map[string]any, trust conformance.Trust) conformance.Verification {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Verify(text, trust)
}

func kinds(v conformance.Verification) (out []string) {
	for _, r := range v.Rejections {
		out = append(out, r.Kind)
	}
	return out
}

func at(doc map[string]any, path ...string) map[string]any {
	for _, name := range path {
		doc = doc[name].(map[string]any)
	}
	return doc
}

func rowsOf(doc map[string]any) []any { return at(doc, "results")["requirements"].([]any) }

func claim(doc map[string]any, id string) map[string]any {
	for _, c := range doc["claimedProfiles"].([]any) {
		if m := c.(map[string]any); m["id"] == id {
			return m
		}
	}
	return map[string]any{}
}

func TestBundleOfThisHostVerifies(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	doc := bundle(t, c)
	v := verdict(t, doc, conformance.Trust{Discovery: c.discovery})
	if v.Attribution != conformance.Attributed || len(v.Rejections) > 0 || v.Moved {
		t.Fatalf("%+v", v)
	}
	if !slices.ContainsFunc(v.Profiles, func(p conformance.Verified) bool { return p.ID == "openwop-discovery-core" && p.Certified }) {
		t.Errorf("profiles %+v", v.Profiles)
	}
	totals := at(doc, "results", "totals")
	if totals["blocked"] != 0.0 || totals["executedFail"] != 0.0 {
		t.Errorf("totals %v", totals)
	}
	if kind := at(doc, "host", "build")["kind"]; kind != "artifact-sha256" {
		t.Errorf("the build is a %v", kind)
	}
	ids := map[string]bool{}
	for _, r := range rowsOf(doc) {
		id := r.(map[string]any)["id"].(string)
		if ids[id] {
			t.Errorf("two rows are called %s", id)
		}
		ids[id] = true
	}
}

// The three ways in which a signature is worth less are three outcomes.
func TestAttributionOutcomes(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	_, stranger, _ := conformance.NewSigningKey()
	foreign, err := conformance.ReadPublicKey(stranger)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(c.discovery), c.signer.KeyID, strings.Repeat("0", 32), 1)
	for name, tc := range map[string]struct {
		trust conformance.Trust
		edit  func(map[string]any)
		want  conformance.Attribution
		exit  int
	}{
		// The suite's receivers are on this machine: what the host allows for them rules out a profile it claims.
		"published":      {trust: conformance.Trust{Discovery: c.discovery}, want: conformance.Attributed, exit: conformance.ExitUncertified},
		"not read":       {want: conformance.NoDiscovery, exit: conformance.ExitNoDiscovery},
		"with a key":     {trust: conformance.Trust{Key: c.public}, want: conformance.NoDiscovery, exit: conformance.ExitNoDiscovery},
		"not published":  {trust: conformance.Trust{Discovery: []byte(without)}, want: conformance.NotPublished, exit: conformance.ExitNotPublished},
		"another's key":  {trust: conformance.Trust{Key: foreign}, want: conformance.Forged, exit: conformance.ExitForged},
		"another build":  {conformance.Trust{Discovery: c.discovery}, func(d map[string]any) { at(d, "host", "build")["id"] = strings.Repeat("0", 64) }, conformance.Forged, conformance.ExitForged},
		"another suite":  {conformance.Trust{Discovery: c.discovery}, func(d map[string]any) { at(d, "suite")["version"] = "9.9.9" }, conformance.Forged, conformance.ExitForged},
		"own copy of it": {trust: conformance.Trust{}, edit: func(d map[string]any) { at(d, "discovery", "document")["signingKeys"] = []any{} }, want: conformance.NoDiscovery, exit: conformance.ExitRefused},
	} {
		doc := bundle(t, c)
		if tc.edit != nil {
			tc.edit(doc)
		}
		if v := verdict(t, doc, tc.trust); v.Attribution != tc.want || v.ExitStatus() != tc.exit {
			t.Errorf("%s: %s, exit %d: %v", name, v.Attribution, v.ExitStatus(), v.Rejections)
		}
	}
}

// A host that claims the whole core, and of which nothing was loosened, certifies all
// it claims.
func TestStandardIsCertified(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	if len(c.report.Host.Relaxations) == 0 {
		t.Error("the host shows nothing that was loosened for the suite")
	}
	c.report.Host.Relaxations = nil
	v := verdict(t, bundle(t, c), conformance.Trust{Discovery: c.discovery})
	if v.Attribution != conformance.Attributed || v.ExitStatus() != conformance.ExitSound {
		t.Fatalf("exit %d: %+v", v.ExitStatus(), v)
	}
	if !slices.ContainsFunc(v.Profiles, func(p conformance.Verified) bool { return p.ID == "openwop-core-standard" && p.Certified }) {
		t.Errorf("profiles %+v", v.Profiles)
	}
}

// Whatever is not what was signed, or does not follow from it, is refused.
func TestTamperedBundlesAreRefused(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	for kind, edit := range map[string]func(map[string]any){
		"not-v3":                func(d map[string]any) { d["bundleVersion"] = "2" },
		"schema":                func(d map[string]any) { d["approved"] = true },
		"duplicate-requirement": func(d map[string]any) { at(d, "results")["requirements"] = append(rowsOf(d), rowsOf(d)[0]) },
		"vacuous-pass":          func(d map[string]any) { passed(d)["assertions"] = 0 },
		"reason-missing":        func(d map[string]any) { delete(inapplicable(d), "detail") },
		"totals-mismatch":       func(d map[string]any) { at(d, "results", "totals")["executedPass"] = 1000 },
		"assertion-count":       func(d map[string]any) { d["assertionCount"] = 1_000_000 },
		"witness-digest":        func(d map[string]any) { inapplicable(d)["detail"] = "never mind" },
		"detail-mismatch":       func(d map[string]any) { at(d, "detail")["nonPass"] = []any{} },
		"discovery-digest":      func(d map[string]any) { at(d, "discovery", "document")["webhooks"] = map[string]any{} },
		"signing-key":           func(d map[string]any) { at(d, "host")["signingKeyId"] = "another" },
		"signature-invalid":     func(d map[string]any) { at(d, "signature")["sig"] = strings.Repeat("A", 86) },
		"not-certifiable":       func(d map[string]any) { claim(d, "openwop-discovery-core")["witnessCount"] = 1 },
		"independent-self-signed": func(d map[string]any) {
			claim(d, "openwop-discovery-core")["evidenceTier"] = "independent"
			s := at(d, "signature")
			d["verifierSignature"] = map[string]any{"alg": "ed25519", "keyId": s["keyId"], "sig": s["sig"]}
		},
	} {
		doc := bundle(t, c)
		edit(doc)
		v := verdict(t, doc, conformance.Trust{Discovery: c.discovery, Key: c.public})
		if !slices.Contains(kinds(v), kind) {
			t.Errorf("%s: %v", kind, v.Rejections)
		}
		if v.ExitStatus() == conformance.ExitSound || v.ExitStatus() == conformance.ExitUncertified {
			t.Errorf("%s: exit %d", kind, v.ExitStatus())
		}
	}
}

func passed(d map[string]any) map[string]any       { return rowWith(d, "executed-pass") }
func inapplicable(d map[string]any) map[string]any { return rowWith(d, "inapplicable") }

func rowWith(d map[string]any, result string) map[string]any {
	for _, r := range rowsOf(d) {
		if m := r.(map[string]any); m["result"] == result {
			return m
		}
	}
	return map[string]any{}
}

// What was blocked, failed or relaxed certifies nothing, and to say that it does
// is refused even where the host's own key has signed it.
func TestWhatDoesNotCertify(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	spoil := func(change func(*conformance.Report)) certified {
		x := c
		x.report.Results = slices.Clone(c.report.Results)
		change(&x.report)
		return x
	}
	set := func(id string, s conformance.Status) func(*conformance.Report) {
		return func(r *conformance.Report) {
			i := slices.IndexFunc(r.Results, func(x conformance.Result) bool { return x.ID == id })
			r.Results[i].Status, r.Results[i].Reason = s, "as the test has it"
		}
	}
	relaxed := func(obligation string) func(*conformance.Report) {
		return func(r *conformance.Report) {
			r.Host.Relaxations = []conformance.Relaxation{{Obligation: obligation, Durability: "deployment", Reason: "a test"}}
		}
	}
	for name, tc := range map[string]struct {
		report certified
		why    string
	}{
		"blocked anywhere":     {spoil(set(c.report.Results[len(c.report.Results)-1].ID, conformance.Blocked)), "blocked"},
		"failed on the floor":  {spoil(set("discovery.document", conformance.Fail)), "v2-capabilities-root-closed is executed-fail"},
		"unknown relaxation":   {spoil(relaxed("something")), "has relaxed something"},
		"relaxation elsewhere": {spoil(relaxed("webhooks.egress")), ""},
	} {
		doc := bundle(t, tc.report)
		v := verdict(t, doc, conformance.Trust{Discovery: c.discovery})
		p := v.Profiles[0]
		if len(v.Rejections) > 0 || p.Certified != (tc.why == "") || !strings.Contains(p.Why, tc.why) {
			t.Errorf("%s: %+v %v", name, v.Profiles, v.Rejections)
		}
		if tc.why == "" {
			continue
		}
		if v.ExitStatus() != conformance.ExitUncertified {
			t.Errorf("%s: exit %d", name, v.ExitStatus())
		}
		claim(doc, p.ID)["certified"] = true
		if v := verdict(t, doc, conformance.Trust{Discovery: c.discovery}); !slices.Contains(kinds(v), "not-certifiable") {
			t.Errorf("%s, marked certified all the same: %v", name, v.Rejections)
		}
	}
}

// A relaxation taken out of a signed bundle shows.
func TestRelaxationsAreSigned(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	doc := bundle(t, c, func(x *conformance.Certificate) {
		x.Relaxations = []conformance.Relaxation{{Obligation: "webhooks.egress", Durability: "deployment", Reason: "a test"}}
	})
	trust := conformance.Trust{Discovery: c.discovery}
	if v := verdict(t, doc, trust); len(v.Rejections) > 0 {
		t.Fatalf("%v", v.Rejections)
	}
	delete(at(doc, "host"), "relaxations")
	if v := verdict(t, doc, trust); !slices.Contains(kinds(v), "witness-digest") {
		t.Errorf("%v", v.Rejections)
	}
}

func TestIndependentEvidence(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	private, public, err := conformance.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	witness, err := conformance.ReadSigner(private, "")
	if err != nil {
		t.Fatal(err)
	}
	doc := bundle(t, c, func(x *conformance.Certificate) { x.Verifier = witness })
	key, _ := conformance.ReadPublicKey(public)
	for name, tc := range map[string]struct {
		key  ed25519.PublicKey
		want []string
	}{
		"with the verifier's key": {key, nil},
		"with no key":             {nil, []string{"independent-unverifiable"}},
		"with the host's key":     {c.public, []string{"verifier-signature-invalid"}},
	} {
		if v := verdict(t, doc, conformance.Trust{Discovery: c.discovery, VerifierKey: tc.key}); !slices.Equal(kinds(v), tc.want) {
			t.Errorf("%s: %v", name, v.Rejections)
		}
	}
	// The host's own key under another name is still its own.
	alias := &conformance.Signer{}
	*alias = *c.signer
	alias.KeyID = "somebody-else"
	if _, err := conformance.Certify(&c.report, conformance.Certificate{Signer: c.signer, Verifier: alias}); err == nil {
		t.Error("a host has vouched for itself")
	}
	at(doc, "verifierSignature")["sig"] = at(doc, "signature")["sig"]
	if v := verdict(t, doc, conformance.Trust{Discovery: c.discovery, VerifierKey: c.public}); !slices.Contains(kinds(v), "independent-self-signed") {
		t.Errorf("%v", v.Rejections)
	}
}

// A key that was retired goes on vouching for what it signed before, and only for that.
func TestRetiredKeys(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	doc := bundle(t, c)
	made, err := time.Parse(time.RFC3339, doc["generatedAt"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for retired, want := range map[time.Time][]string{made.Add(time.Hour): nil, made.Add(-time.Hour): {"key-retired"}} {
		var d map[string]any
		if err := json.Unmarshal(c.discovery, &d); err != nil {
			t.Fatal(err)
		}
		d["signingKeys"].([]any)[0].(map[string]any)["retiredAt"] = retired.Format(time.RFC3339)
		text, _ := json.Marshal(d)
		v := verdict(t, doc, conformance.Trust{Discovery: text})
		if v.Attribution != conformance.Attributed || !v.Moved || !slices.Equal(kinds(v), want) {
			t.Errorf("retired at %s: %+v", retired, v)
		}
	}
}

func TestOnlyWholeReportsAreCertified(t *testing.T) {
	t.Parallel()
	c := certifiedReport(t)
	filtered, nameless := c.report, c.report
	filtered.Filter = "x"
	nameless.Host.Build = nil
	for name, r := range map[string]conformance.Report{"filtered": filtered, "no build": nameless} {
		if _, err := conformance.Certify(&r, conformance.Certificate{Signer: c.signer}); err == nil {
			t.Errorf("%s: certified", name)
		}
	}
}

// The whole way by the verbs: keygen, certify, verify.
func TestCertifyCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair, file := filepath.Join(dir, "key"), filepath.Join(dir, "bundle.json")
	run := func(args ...string) (int, string) {
		var out, errs strings.Builder
		n := conformance.Command(context.Background(), args, func(string) string { return "" }, &out, &errs)
		return n, out.String() + errs.String()
	}
	if n, out := run("keygen", "--out", pair); n != conformance.ExitOK || !strings.Contains(out, "key id") {
		t.Fatalf("keygen: %d %s", n, out)
	}
	if n, out := run("keygen", "--out", pair); n != conformance.ExitUsage {
		t.Errorf("keygen wrote over a key: %d %s", n, out)
	}
	h := start(t, fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey, SigningKeys: pair + ".pub.pem"})
	url := serve(t, h)
	n, out := run("--base-url", url, "--api-key", testKey, "--quick", "--parallel", "8", "--certify", file, "--signing-key", pair+".pem")
	if n != conformance.ExitBlocked {
		t.Fatalf("certify: %d %s", n, out)
	}
	for want, args := range map[int][]string{
		conformance.ExitUncertified:  {"verify", file, "--base-url", url}, // a quick run leaves things blocked
		conformance.ExitNoDiscovery:  {"verify", file},
		conformance.ExitUsage:        {"verify"},
		conformance.ExitRefused:      {"verify", "--base-url", url, pair + ".pem"},
		conformance.ExitNotPublished: {"verify", file, "--json", "--discovery", write(t, `{"signingKeys":[]}`)},
	} {
		if n, out := run(args...); n != want {
			t.Errorf("%v: exit %d, want %d: %s", args, n, want, out)
		}
	}
	for _, args := range [][]string{
		{"--base-url", url, "--certify", file}, {"--base-url", url, "--signing-key", pair + ".pem"},
		{"--base-url", url, "--certify", file, "--signing-key", pair + ".pub.pem"},
		{"--base-url", url, "--certify", file, "--signing-key", pair + ".pem", "--filter", "x"},
		{"--base-url", url, "--certify", file, "--signing-key", pair + ".pem", "--host-build", "guess:x"},
		{"verify", file, "--base-url", url, "--discovery", file}, {"verify", file, "--key", file}, {"authority", "more"},
	} {
		if n, out := run(args...); n != conformance.ExitUsage {
			t.Errorf("%v: exit %d: %s", args, n, out)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func fetch(t *testing.T, h http.Handler, path string) []byte {
	t.Helper()
	rec := httptest.NewRecorder()
	r, err := http.NewRequest("GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(rec, r)
	return rec.Body.Bytes()
}
