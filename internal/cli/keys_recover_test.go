package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A lost key is made up for beside the stopped host, and only there. What was in the
// host is still there, and the key opens all of it.
func TestKeysRecover(t *testing.T) {
	w := newWorld(t)
	data := filepath.Join(w.home, "data")
	w.vars["FERMATA_BOOTSTRAP_KEY"] = testKey
	flows := filepath.Join(w.home, "flows")
	w.file("flows/echo.json", echo("1"))
	done := w.start("serve", "--listen", "127.0.0.1:0", "--data", data, "--workflows", flows)
	w.serving()
	w.saw(w.out, "1 workflow from "+flows)

	other := newWorld(t)
	if code := other.run("keys", "recover", "--data", data); code != ExitFailed {
		t.Errorf("beside a host that runs: exit %d: %s", code, other.out)
	}
	w.signals <- os.Interrupt
	w.wait(done)

	other = newWorld(t)
	made := strings.Fields(other.must("keys", "recover", "--data", data))
	if len(made) != 3 {
		t.Fatalf("%q", made)
	}
	contains(t, other.err.String(), "an API key was made from the shell", "shown this once")
	if strings.Contains(other.err.String(), made[2]) {
		t.Error("the key is in the log")
	}

	w = newWorld(t)
	done = w.start("serve", "--listen", "127.0.0.1:0", "--data", data)
	url := w.serving()
	for _, key := range []string{testKey, made[2]} {
		other = newWorld(t)
		other.vars["FERMATA_SERVER"], other.vars["FERMATA_API_KEY"] = url, key
		other.must("workflows", "show", "echo")
		contains(t, other.must("tenants", "list"), "default")
		contains(t, other.must("keys", "list"), "first key", "recovered")
	}
	w.signals <- os.Interrupt
	w.wait(done)
}

func TestKeysRecoverRefusals(t *testing.T) {
	w := newWorld(t)
	if code := w.run("keys", "recover", "--tenant", "acme", "--data", filepath.Join(w.home, "none")); code != ExitFailed {
		t.Errorf("without data: exit %d", code)
	}
	contains(t, w.err.String(), "there is no host's data")
	if _, err := os.Stat(filepath.Join(w.home, "none")); err == nil {
		t.Error("a folder was made")
	}
	if code := newWorld(t).run("keys", "recover", "more"); code != ExitUsage {
		t.Errorf("exit %d", code)
	}
}

// Tenants, roles, members and keys by their commands, with the same checks as on the
// wire: a tenant's owner is not the host's administrator.
func TestTenantCommands(t *testing.T) {
	w := newWorld(t)
	w.server()
	admin := w.vars["FERMATA_API_KEY"]
	var made struct {
		OwnerKey struct{ Key, KeyID string } `json:"ownerKey"`
	}
	if err := json.Unmarshal([]byte(w.must("tenants", "add", "acme", "--name", "Acme", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	contains(t, w.must("tenants", "list"), "TENANT", "acme", "active", "default")

	w.vars["FERMATA_API_KEY"] = made.OwnerKey.Key
	for _, args := range [][]string{{"tenants", "list"}, {"tenants", "add", "more"}, {"tenants", "suspend", "default"}, {"keys", "rotate-tokens"}} {
		if code := w.run(args...); code != ExitDenied {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	contains(t, w.must("roles", "list"), "owner", "every tenant", "viewer", "manifest:read runs:read")
	contains(t, w.must("roles", "add", "desk", "--scopes", "runs:read,approvals:*"), "desk", "approvals:*")
	var worker struct{ Key, KeyID string }
	if err := json.Unmarshal([]byte(w.must("keys", "add", "--name", "ci", "--scopes", "manifest:read", "--kind", "workload", "--expires-in", "90d", "--json")), &worker); err != nil {
		t.Fatal(err)
	}
	out := w.must("members", "add", worker.KeyID, "--roles", "desk", "--groups", "ops")
	contains(t, out, "mem-", "desk", "ops", "runs:read, approvals:*")
	member := strings.Fields(out)[1]
	contains(t, w.must("members", "list"), member, worker.KeyID, "urn:fermata:api-key", "desk")
	contains(t, w.must("keys", "list"), "ci", "workload", "active")

	owner := w.vars["FERMATA_API_KEY"]
	w.vars["FERMATA_API_KEY"] = worker.Key
	w.must("runs", "list")
	w.vars["FERMATA_API_KEY"] = owner
	contains(t, w.must("members", "remove", member), "removed")
	contains(t, w.must("roles", "remove", "desk"), "removed")
	w.vars["FERMATA_API_KEY"] = worker.Key
	if code := w.run("runs", "list"); code != ExitDenied {
		t.Errorf("a member no more: exit %d", code)
	}

	w.vars["FERMATA_API_KEY"] = owner
	turned := strings.Fields(w.must("keys", "rotate", worker.KeyID, "--overlap", "0s"))
	for key, want := range map[string]int{worker.Key: ExitDenied, turned[2]: ExitOK} {
		w.vars["FERMATA_API_KEY"] = key
		if code := w.run("workflows", "list"); code != want {
			t.Errorf("after the rotation: exit %d, want %d: %s", code, want, w.err)
		}
	}
	w.vars["FERMATA_API_KEY"] = owner
	contains(t, w.must("keys", "revoke", worker.KeyID), "is revoked")
	if code := w.run("keys", "rotate", worker.KeyID); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	w.vars["FERMATA_API_KEY"] = admin
	contains(t, w.must("tenants", "suspend", "acme"), "acme is suspended")
	w.vars["FERMATA_API_KEY"] = owner
	if code := w.run("runs", "list"); code != ExitDenied {
		t.Errorf("suspended: exit %d", code)
	}
	contains(t, w.err.String(), "suspended")
	w.vars["FERMATA_API_KEY"] = admin
	contains(t, w.must("tenants", "activate", "acme"), "acme is active")
	w.vars["FERMATA_API_KEY"] = owner
	w.must("runs", "list")
}
