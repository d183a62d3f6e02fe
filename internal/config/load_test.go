package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/relax"
	"github.com/spf13/pflag"
)

// setup is the surroundings of one Load.
type setup struct {
	args  []string
	env   map[string]string
	files map[string]string // below the home folder
	scope Scope
	own   bool
	goos  string
}

func (s setup) load(t *testing.T) (Config, Sources, string, error) {
	t.Helper()
	home := t.TempDir()
	expand := strings.NewReplacer("HOME", home).Replace
	for name, text := range s.files {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Bind(fs, s.scope)
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = expand(a)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home}
	for k, v := range s.env {
		env[k] = expand(v)
	}
	if s.goos == "" {
		s.goos = "linux"
	}
	c, src, err := Load(Input{Flags: fs, Getenv: func(k string) string { return env[k] }, OwnData: s.own, GOOS: s.goos})
	return c, src, home, err
}

func TestDefaults(t *testing.T) {
	c, src, home, err := setup{scope: ServeOnly}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Mode: relax.Development, Listen: "127.0.0.1:7411", Data: filepath.Join(home, ".local", "share", "fermata"), LogLevel: "info", LogFormat: "auto", TLSMin: "1.2",
		StoreMax: 16, Lease: 15 * time.Second,
		MaxBodyBytes: 5 << 20, MaxNodeExecutions: 10_000, MaxRunDuration: 365 * day, MaxLoopIterations: 1000,
		MaxConcurrentNodes: 256, MaxCalls: 4096, MaxStreams: 20_000,
		WebhookAttempts: 10, WebhookBackoff: 2 * time.Second, WebhookDisable: 6 * time.Hour, ShutdownGrace: 10 * time.Second,
		Retention: Retention{MaxAge: 365 * day, Tombstones: 730 * day}, AuditEntries: 1000, AuditInterval: time.Minute,
		Limits: Limits{MaxBodyMemory: 128 << 20, TenantRate: "none", KeyRate: "none", AuthFailures: "300/m", RequestTimeout: 2 * time.Minute},
	}
	if fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	for _, s := range Settings() {
		if src.Given(s.Name) || src[s.Name].String() != "default" {
			t.Errorf("%s is said to come from %s", s.Name, src[s.Name])
		}
	}
}

// Every setting obeys the same precedence, and says where its value came from.
func TestPrecedence(t *testing.T) {
	samples := map[string][3]string{ // file, environment, flag
		"listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, "data": {"/f", "/e", "/g"}, "workflows": {"/f", "/e", "/g"},
		"mode": {"development", "production", "development"}, "log-level": {"debug", "warn", "error"}, "log-format": {"json", "text", "json"},
		"max-run-duration": {"1m", "2h", "3d"}, "shutdown-grace": {"1s", "2s", "3s"}, "shutdown-notice": {"1s", "2s", "3s"},
		"egress-ca-file": {"/f", "/e", "/g"}, "signing-keys": {"/f", "/e", "/g"}, "conformance-seams": {"on", "off", "on"},
		"legacy-events": {"on", "off", "on"}, "v1": {"on", "off", "on"},
		"allow-egress": {"10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"}, "allow-webhooks": {"10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"},
		"store": {"postgres://f/a", "postgres://e/a?x=1", "postgres://u@g/a"}, "store-connections": {"2", "3", "4"}, "store-listen": {"postgres://f/a", "same", "postgres://u@g/a"}, "lease": {"2s", "3s", "4s"},
		"master-key-file": {"/f", "/e", "/g"}, "credentials-dir": {"/f", "/e", "/g"},
		"webhook-ca": {"/f", "/e", "/g"}, "webhook-attempts": {"1", "2", "3"}, "webhook-backoff": {"1s", "2s", "3s"}, "webhook-disable-after": {"1s", "2h", "3d"},
		"retention-max-age": {"1d", "2d", "none"}, "retention-max-runs": {"1", "2", "none"}, "retention-tombstones": {"1d", "2d", "3d"},
		"max-body-memory": {"20000001", "20000002", "20000003"}, "request-timeout": {"1s", "2m", "3s"},
		"tenant-rate": {"1/s", "2/m:7", "none"}, "key-rate": {"1/s", "2/m:7", "none"}, "auth-failures": {"1/s", "2/m:7", "none"},
		"cors-origins": {"https://a.test", "https://b.test", "http://c.test:1"}, "allowed-hosts": {"a.test", "b.test", "c.test"},
		"audit-checkpoint-interval": {"1s", "2m", "3h"}, "audit-retention": {"1d", "none", "30d"}, "audit-runs": {"on", "off", "on"},
		"public-url": {"https://f.example", "https://e.example", "https://g.example"}, "tls-min-version": {"1.2", "1.3", "1.2"},
		"tls-cert": {"/f", "/e", "/g"}, "tls-key": {"/f", "/e", "/g"}, "tls-client-ca": {"/f", "/e", "/g"},
		"identity":          {"/dev/null", "/dev/null", "/dev/null"}, // it is read, and may be empty
		"retention-tenants": {"a=1d/none", "a=none/5", "a=30d/7,b=none/none"},
	}
	for i := range settings {
		s := &settings[i]
		if s.EnvOnly {
			continue
		}
		v, ok := samples[s.Name]
		if !ok {
			v = [3]string{"2001", "2002", "2003"}
		}
		t.Run(s.Name, func(t *testing.T) {
			in := setup{scope: ServeOnly, files: map[string]string{"conf.yaml": s.Name + ": " + v[0] + "\n"}, env: map[string]string{"FERMATA_CONFIG": "HOME/conf.yaml"}}
			expect := func(value, source string) {
				t.Helper()
				c, src, home, err := in.load(t)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.get(&c); got != value {
					t.Errorf("value %q, want %q", got, value)
				}
				if got := strings.ReplaceAll(src[s.Name].String(), home, "HOME"); got != source {
					t.Errorf("source %q, want %q", got, source)
				}
			}
			expect(v[0], "file HOME/conf.yaml:1")
			in.env[s.Env()] = v[1]
			expect(v[1], "environment "+s.Env())
			in.args = []string{"--" + s.Name, v[2]}
			expect(v[2], "flag --"+s.Name)
		})
	}
}

func TestRefusals(t *testing.T) {
	file := func(text string) setup {
		return setup{scope: ServeOnly, files: map[string]string{"c.yaml": text}, args: []string{"--config", "HOME/c.yaml"}}
	}
	flag := func(args ...string) setup { return setup{scope: ServeOnly, args: args} }
	for name, tc := range map[string]struct {
		in   setup
		want string
	}{
		"address":        {flag("--listen", "http://x"), `listen: "http://x" is not an address such as 127.0.0.1:7411`},
		"port":           {flag("--listen", "x:99999"), `listen: "x:99999" has no port from 0 to 65535 (from the flag --listen)`},
		"number":         {setup{scope: ServeOnly, env: map[string]string{"FERMATA_MAX_CALLS": "many"}}, `max-calls: "many" is not a whole number from 1 to 1000000 (from the environment FERMATA_MAX_CALLS)`},
		"too small":      {flag("--max-body-bytes", "0"), `max-body-bytes: "0" is not a whole number from 1024 to 8388608`},
		"duration":       {flag("--shutdown-grace", "10"), `shutdown-grace: "10" is not a duration such as 10s, 5m, 12h or 30d`},
		"long":           {flag("--shutdown-grace", "2h"), `shutdown-grace: "2h" is not from 0s to 1h`},
		"level":          {flag("--log-level", "loud"), `log-level: "loud" is not one of debug, info, warn, error`},
		"range":          {flag("--allow-egress", "10.0.0.1/8"), `allow-egress: "10.0.0.1/8" holds 10.0.0.1/8, whose range is written 10.0.0.0/8`},
		"no range":       {flag("--allow-egress", "10.0.0.0/8", "--allow-egress", "lan"), `holds "lan", which is not a range such as 10.1.0.0/16`},
		"unknown":        {file("colour: red"), `colour: there is no such setting (from the file HOME/c.yaml:1)`},
		"spelling":       {file("a: 1\n"), `a: there is no such setting (`},
		"other spelling": {file("listen: :1\nlogLevel: x"), `logLevel: there is no such setting; it is written "log-level" (from the file HOME/c.yaml:2)`},
		"mode":           {flag("--mode", "prod"), `mode: "prod" is not one of development, production (from the flag --mode)`},
		"relaxed": {setup{scope: ServeOnly, args: []string{"--allow-egress", "10.0.0.0/8"}, env: map[string]string{"FERMATA_MODE": "production"}},
			`allow-egress: nodes may call 10.0.0.0/8, which is closed otherwise; a host in production mode does not start with that (from the flag --allow-egress; mode from the environment FERMATA_MODE)`},
		"too young":      {flag("--retention-max-age", "23h"), `retention-max-age: "23h" is not from 1d to 36500d, or none (from the flag --retention-max-age)`},
		"too few":        {flag("--retention-max-runs", "0"), `retention-max-runs: "0" is not a whole number from 1 to 1000000000, or none`},
		"tenant":         {flag("--retention-tenants", "a=1d/5,b=1h/5"), `holds "b=1h/5", which has an age that is not from 1d to 36500d, or none`},
		"tenant form":    {flag("--retention-tenants", "a"), `holds "a", which is not written like acme=30d/10000`},
		"tenant name":    {flag("--retention-tenants", "a b=1d/5"), `holds "a b=1d/5", which begins with no tenant`},
		"tenant twice":   {flag("--retention-tenants", "a=1d/5,a=2d/5"), `holds "a=2d/5", which names the tenant twice`},
		"twice":          {file("listen: a:1\nlisten: b:2"), `listen: is set twice (from the file HOME/c.yaml:2)`},
		"structure":      {file("listen: {a: 1}"), `listen: must be a single value (from the file HOME/c.yaml:1)`},
		"no mapping":     {file("- a"), `config: the file HOME/c.yaml cannot be read: it must hold names with values`},
		"two documents":  {file("listen: a:1\n---\nlisten: a:1"), `it holds more than one document`},
		"broken":         {file("listen: ["), `config: the file HOME/c.yaml cannot be read: `},
		"bad file value": {file("log-level: loud"), `log-level: "loud" is not one of debug, info, warn, error (from the file HOME/c.yaml:1)`},
		"no file":        {flag("--config", "HOME/none.yaml"), `config: there is no file "HOME/none.yaml" (from the flag --config)`},
		"secret in file": {file("bootstrap-key: " + strings.Repeat("k", 40)), `bootstrap-key: is a secret and can be given by FERMATA_BOOTSTRAP_KEY only`},
		"short secret":   {setup{scope: ServeOnly, env: map[string]string{"FERMATA_BOOTSTRAP_KEY": "hunter2"}}, `bootstrap-key: must have 32 to 512 characters (from the environment FERMATA_BOOTSTRAP_KEY)`},
		"two files": {
			setup{scope: ServeOnly, files: map[string]string{"d/fermata.yaml": "", "d/fermata.json": "{}"}, args: []string{"--data", "HOME/d"}},
			`config: the data folder holds both fermata.yaml and fermata.json; remove one of them`,
		},
		"data inside data": {
			setup{scope: ServeOnly, files: map[string]string{"d/fermata.yaml": "data: /x"}, args: []string{"--data", "HOME/d"}},
			`data: "/x" cannot be set by a file inside the data folder (from the file HOME/d/fermata.yaml:1)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, home, err := tc.in.load(t)
			if err == nil {
				t.Fatal("it was taken")
			}
			got := strings.ReplaceAll(err.Error(), home, "HOME")
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s", got)
			}
			if strings.Contains(got, "\n") && name != "broken" {
				t.Errorf("more than one line: %q", got)
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, "kkk") {
				t.Errorf("a secret is shown: %s", got)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	for name, in := range map[string]setup{
		"yaml in data": {files: map[string]string{"d/fermata.yaml": "# mine\nlisten: localhost:8\nallow-egress:\n  - 10.0.0.0/8\n  - 192.168.1.7\nworkflows: flows\nlog-level:\n"}, args: []string{"--data", "HOME/d"}},
		"json in data": {files: map[string]string{"d/fermata.json": "{\n\t\"listen\": \"localhost:8\",\n\t\"allow-egress\": [\"10.0.0.0/8\",\t\"192.168.1.7\"], \"workflows\":\"flows\"}"}, args: []string{"--data", "HOME/d"}},
		"default data": {files: map[string]string{".local/share/fermata/fermata.yml": "{listen: 'localhost:8', allow-egress: '10.0.0.0/8,192.168.1.7', workflows: HOME/d/flows}"}},
	} {
		t.Run(name, func(t *testing.T) {
			in.scope = ServeOnly
			c, _, home, err := in.load(t)
			if err != nil {
				t.Fatal(err)
			}
			want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.1.7/32")}
			if c.Listen != "localhost:8" || fmt.Sprint(c.AllowEgress) != fmt.Sprint(want) || c.LogLevel != "info" {
				t.Errorf("got %+v", c)
			}
			if name != "default data" && c.Workflows != filepath.Join(home, "d", "flows") {
				t.Errorf("workflows %q is not beside the file", c.Workflows)
			}
		})
	}
	if c, _, _, err := (setup{files: map[string]string{".local/share/fermata/fermata.yaml": ""}}).load(t); err != nil || c.LogLevel != "info" {
		t.Errorf("an empty file: %v", err)
	}
}

// A workflow that is run directly keeps away from the data of a host that may
// be running beside it.
func TestOwnData(t *testing.T) {
	in := setup{
		own: true, env: map[string]string{"FERMATA_DATA": "HOME/d", "FERMATA_LOG_LEVEL": "warn"},
		files: map[string]string{"d/fermata.yaml": "log-level: debug", ".local/share/fermata/fermata.yaml": "log-level: error", "mine/fermata.yaml": "max-loop-iterations: 7"},
	}
	c, src, _, err := in.load(t)
	if err != nil || c.Data != "" || c.LogLevel != "warn" || src.Given("data") {
		t.Errorf("%+v, %v", c, err)
	}
	in.args = []string{"--data", "HOME/mine"}
	if c, _, home, err := in.load(t); err != nil || c.Data != filepath.Join(home, "mine") || c.MaxLoopIterations != 7 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDefaultData(t *testing.T) {
	for name, tc := range map[string]struct {
		goos string
		env  map[string]string
		want string
	}{
		"xdg":      {"linux", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/fermata"},
		"relative": {"linux", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "x"}, "/h/.local/share/fermata"},
		"mac":      {"darwin", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/h/Library/Application Support/fermata"},
		"windows":  {"windows", map[string]string{"LocalAppData": "/c/local"}, "/c/local/fermata"},
		"nothing":  {"linux", nil, ""},
	} {
		if got := defaultData(tc.goos, func(k string) string { return tc.env[k] }); got != filepath.FromSlash(tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		":7411": false, "0.0.0.0:1": false, "[::]:1": false, "example.org:1": false, "192.168.0.1:1": false, "": false,
	} {
		if got := (&Config{Listen: addr}).Loopback(); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	key := strings.Repeat("s3cret", 8)
	c, src, _, err := setup{scope: ServeOnly, env: map[string]string{"FERMATA_BOOTSTRAP_KEY": key}, args: []string{"--allow-egress", "10.0.0.0/8", "--listen", ":80"}}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]Line{}
	for _, l := range Describe(c, src) {
		lines[l.Name] = l
		if strings.Contains(fmt.Sprint(l), "s3cret") {
			t.Errorf("the secret is shown: %+v", l)
		}
	}
	if len(lines) != len(settings) || lines["bootstrap-key"].Value != "(set, hidden)" || lines["max-run-duration"].Value != "365d" {
		t.Errorf("%+v", lines)
	}
	if lines["allow-egress"].Note == "" || lines["listen"].Note == "" || lines["data"].Note != "" {
		t.Errorf("relaxations are not noted: %+v", lines)
	}
	if ref := Reference(); strings.Count(ref, "\n") != len(settings)+2 || !strings.Contains(ref, "FERMATA_MAX_BODY_BYTES") {
		t.Errorf("reference:\n%s", ref)
	}
}

// The default of every row is a valid value of it, and shown as it is written.
func TestDefaultsAreValid(t *testing.T) {
	for i := range settings {
		s := &settings[i]
		if s.Default == "" {
			continue
		}
		var c Config
		if err := s.set(&c, s.Default); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if got := s.get(&c); got != s.Default {
			t.Errorf("%s: %q is shown as %q", s.Name, s.Default, got)
		}
	}
}

func TestFlagsAreDescribedInPhrases(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Bind(fs, ServeOnly)
	for name, want := range map[string]string{"signing-keys": "PEM file", "listen": "address of the API", "conformance-seams": "on mounts"} {
		if got := fs.Lookup(name).Usage; !strings.HasPrefix(got, want) || strings.HasSuffix(got, ".") {
			t.Errorf("--%s: %s", name, got)
		}
	}
}

// A principal that is nobody would be an override that never comes about.
func TestOverrideApproversNameSomebody(t *testing.T) {
	for v, want := range map[string]bool{"group:ops,role:lead,key-1": true, "group:": false, "ops,role:": false, ":ops": false, "a,,b": false} {
		c, _, _, err := setup{scope: ServeOnly, args: []string{"--override-approvers", v}}.load(t)
		if (err == nil) != want || err == nil && strings.Join(c.OverrideApprovers, ",") != v {
			t.Errorf("%s: %v, %v", v, c.OverrideApprovers, err)
		}
	}
}
