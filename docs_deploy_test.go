package fermata_test

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/config"
	"go.yaml.in/yaml/v4"
)

const deployFolder = "docs/deploy"

func deployFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(path.Join(deployFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// composeFile is what a test looks at in compose.yaml.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Environment map[string]string
		Volumes     []string
		Ports       []string
		Networks    []string
		DependsOn   yaml.Node     `yaml:"depends_on"`
		StopGrace   time.Duration `yaml:"stop_grace_period"`
		Deploy      struct{ Replicas int }
	}
	Networks map[string]yaml.Node
	Volumes  map[string]yaml.Node
}

func readCompose(t *testing.T) (c composeFile) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(deployFile(t, "compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// assigned finds NAME=value of settings in a text, those that are commented out, too.
func assigned(text string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(FERMATA_[A-Z_]+)=(\S*)`).FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// accepts loads the settings of a deployment as serve does.
func accepts(t *testing.T, from string, env map[string]string) config.Config {
	t.Helper()
	if len(env) < 2 {
		t.Fatalf("%s sets %d settings", from, len(env))
	}
	names := map[string]bool{}
	for _, s := range config.Settings() {
		names[s.Env()] = true
	}
	values := map[string]string{}
	for name, v := range env {
		if !names[name] {
			t.Errorf("%s sets %s, which is no setting", from, name)
		}
		if v = strings.ReplaceAll(v, "%S", "/var/lib"); !strings.ContainsAny(v, "$…") {
			values[name] = v // the rest is the operator's
		}
	}
	cfg, _, err := config.Load(config.Input{Getenv: func(name string) string { return values[name] }})
	if err != nil {
		t.Errorf("%s: %v", from, err)
	}
	return cfg
}

// TestDeployCompose: what the compose file sets exists, is accepted and leaves the
// program the time it takes to stop; and what it names is there.
func TestDeployCompose(t *testing.T) {
	c := readCompose(t)
	f := c.Services["fermata"]
	env := assigned(deployFile(t, "Dockerfile"))
	maps.Copy(env, f.Environment)
	delete(env, "PGPASSWORD")
	cfg := accepts(t, "compose.yaml", env)
	if f.Deploy.Replicas != 3 || cfg.Store == "" || cfg.Mode != "production" {
		t.Errorf("%d replicas on %q in mode %s", f.Deploy.Replicas, cfg.Store, cfg.Mode)
	}
	if len(config.Relaxations(cfg)) > 0 {
		t.Errorf("it relaxes %v", config.Relaxations(cfg))
	}
	if f.StopGrace <= cfg.ShutdownNotice+cfg.ShutdownGrace {
		t.Errorf("stopped after %s, and it takes up to %s", f.StopGrace, cfg.ShutdownNotice+cfg.ShutdownGrace)
	}
	most := regexp.MustCompile(`max_connections=(\d+)`).FindStringSubmatch(deployFile(t, "compose.yaml"))
	if most == nil {
		t.Fatal("no max_connections")
	}
	// A replica that takes over while another one drains, and whoever looks after it all.
	if n, err := strconv.Atoi(most[1]); err != nil || n < (f.Deploy.Replicas+1)*cfg.StoreMax+10 {
		t.Errorf("%s connections for %d replicas of %d: %v", most[1], f.Deploy.Replicas, cfg.StoreMax, err)
	}
	if _, err := os.Stat(path.Join(deployFolder, f.Build.Context, f.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	for name, s := range c.Services {
		for _, n := range s.Networks {
			if _, ok := c.Networks[n]; !ok {
				t.Errorf("%s: no network %s", name, n)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[from]; ok {
				continue
			}
			if _, err := os.Stat(path.Join(deployFolder, from)); err != nil {
				t.Errorf("%s mounts %s: %v", name, from, err)
			}
		}
	}
}

// TestDeployUnit: the same of the systemd unit and the file of settings beside it.
func TestDeployUnit(t *testing.T) {
	unit := deployFile(t, "fermata@.service")
	env := assigned(deployFile(t, "fermata.env"))
	var set []string
	for _, line := range strings.Split(unit, "\n") {
		if strings.HasPrefix(line, "Environment=") {
			set = append(set, line)
		}
	}
	maps.Copy(env, assigned(strings.Join(set, "\n")))
	for _, secret := range []string{"FERMATA_MASTER_KEY", "FERMATA_BOOTSTRAP_KEY"} {
		if v, ok := env[secret]; !ok || v != "" {
			t.Errorf("%s is %q", secret, v)
		}
		delete(env, secret)
	}
	cfg := accepts(t, "fermata@.service", env)
	m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+s)$`).FindStringSubmatch(unit)
	if m == nil {
		t.Fatal("no TimeoutStopSec in seconds")
	}
	if stop, err := time.ParseDuration(m[1]); err != nil || stop <= cfg.ShutdownNotice+cfg.ShutdownGrace {
		t.Errorf("killed after %s, and it takes up to %s: %v", stop, cfg.ShutdownNotice+cfg.ShutdownGrace, err)
	}
	for _, name := range regexp.MustCompile(`FERMATA_[A-Z_]+`).FindAllString(unit, -1) {
		if !slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Env() == name }) {
			t.Errorf("the unit speaks of %s, which is no setting", name)
		}
	}
}

// TestDeployBalancer: it asks what the host answers, and does not cut streams that are
// only quiet.
func TestDeployBalancer(t *testing.T) {
	text := deployFile(t, "haproxy.cfg")
	routes, err := os.ReadFile("internal/api/v2/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`http-check send meth GET uri (\S+)`).FindStringSubmatch(text)
	if m == nil || !strings.Contains(string(routes), `"`+m[1]+`"`) {
		t.Errorf("the check asks for %v", m)
	}
	for _, side := range []string{"client", "server"} {
		m := regexp.MustCompile(`timeout ` + side + ` (\d+[sm])`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no timeout of the %s", side)
		}
		if d, err := time.ParseDuration(m[1]); err != nil || d < 4*sse.Keepalive {
			t.Errorf("%s of silence from the %s end a stream that speaks every %s: %v", m[1], side, sse.Keepalive, err)
		}
	}
	port := readCompose(t).Services["balancer"].Ports
	if bind := regexp.MustCompile(`(?m)^\s+bind :(\d+)`).FindStringSubmatch(text); bind == nil || len(port) != 1 || !strings.HasSuffix(port[0], ":"+bind[1]) {
		t.Errorf("it listens on %v, and %v is published", bind, port)
	}
}

// TestDeployGo: the image is built with the Go that the module asks for.
func TestDeployGo(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	got := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)`).FindStringSubmatch(deployFile(t, "Dockerfile"))
	if want == nil || got == nil || got[1] != string(want[1]) {
		t.Errorf("the image is built with %v, the module asks for %s", got, want)
	}
}
