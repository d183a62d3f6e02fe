package host

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/webhook"
)

// uncalled are exported methods of Host that no caller's request reaches by itself:
// what starts, runs and describes the host, and what a token has opened already.
var uncalled = map[string]string{
	"Limits": "bounds", "Relaxations": "for the operator", "Capabilities": "discovery, which is for everybody", "ProtocolVersions": "discovery, too", "Fixtures": "discovery, too",
	"Now":            "the time says nothing about anybody",
	"ServesWebhooks": "what is wired", "Sweep": "the host's own loop", "Tick": "the host's own loop", "Prune": "the operator, beside the host",
	"Callback": "the worker of deliveries", "OfferPeriod": "part of a validator", "RotateTokenKey": "the embedding program",
	"OpenToken": "the token is the credential", "InspectByToken": "behind OpenToken", "ResolveByToken": "behind OpenToken",
	"FoldUpTo": "behind OpenLog", "Audit": "the host's own loop", "OpenAudit": "the host's start", "Unauthenticated": "counts who was not let in", "Ready": "whether the host works, for everybody", "Leave": "the process that is told to stop", "RetentionDays": "discovery", "HostID": "discovery", "ServesCredentials": "what is wired", "ResolveCredential": "for nodes of a run, in its tenant",
}

var callerType = reflect.TypeFor[identity.Caller]()

// callable are the exported methods of Host that take a caller.
func callable() map[string]reflect.Method {
	out := map[string]reflect.Method{}
	host := reflect.TypeFor[*Host]()
	for i := range host.NumMethod() {
		m := host.Method(i)
		for j := range m.Type.NumIn() {
			if m.Type.In(j) == callerType {
				out[m.Name] = m
			}
		}
	}
	return out
}

func TestEveryMethodIsAUseCaseOrHasAReason(t *testing.T) {
	cases := callable()
	host := reflect.TypeFor[*Host]()
	for i := range host.NumMethod() {
		name := host.Method(i).Name
		if _, ok := cases[name]; !ok && uncalled[name] == "" {
			t.Errorf("Host.%s takes no caller, and nobody has said why", name)
		}
	}
	for name := range uncalled {
		if _, there := host.MethodByName(name); !there {
			t.Errorf("there is no Host.%s any more", name)
		}
		if _, ok := cases[name]; ok {
			t.Errorf("Host.%s takes a caller", name)
		}
	}
}

// Each use case is called by nobody, by somebody who holds every scope but the one
// it asks for, and, where it names a run, by somebody who holds that one about a run
// of another tenant. None gets so far as to look at anything: the host has no store.
func TestEveryUseCaseHasARule(t *testing.T) {
	rules := Rules()
	cases := callable()
	for name := range rules {
		if _, ok := cases[name]; !ok {
			t.Errorf("there is a rule for %s, and no such use case", name)
		}
	}
	for name, m := range cases {
		rule, ok := rules[name]
		if !ok {
			t.Errorf("Host.%s has no rule: say in rules.go what it asks of its caller", name)
			continue
		}
		if err := call(t, m, identity.Caller{}); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("Host.%s lets in nobody at all: %v", name, err)
		}
		if rule.Scope == "" {
			continue
		}
		c := someone(allBut(rule.Scope)...)
		var p *problem.Error
		if err := call(t, m, c); !errors.As(err, &p) || p.Code != problem.Forbidden || p.Details["requiredScope"] != rule.Scope {
			t.Errorf("Host.%s asks for another scope than %s: %v", name, rule.Scope, err)
		}
		if rule.Also != "" {
			if err := call(t, m, someone(rule.Scope)); !errors.As(err, &p) || p.Code != problem.Forbidden || p.Details["requiredScope"] != rule.Also {
				t.Errorf("Host.%s asks for no %s: %v", name, rule.Also, err)
			}
		}
		if takesRun(m) != rule.Run {
			t.Errorf("Host.%s: the rule says %v of whether it names a run", name, rule.Run)
		}
		if rule.Run {
			if err := call(t, m, someone(rule.Scope, rule.Also)); !problem.Is(err, problem.IDTenantMismatch) {
				t.Errorf("Host.%s looks at a run of another tenant: %v", name, err)
			}
		}
		if !identity.InWorkspace(rule.Scope) {
			bound := someone(rule.Scope)
			bound.Workspace = "eu"
			if err := call(t, m, bound); !errors.As(err, &p) || p.Code != problem.Forbidden || p.Details["reason"] != "workspace-bound" {
				t.Errorf("Host.%s is open to whoever is bound to a workspace: %v", name, err)
			}
		}
	}
}

func someone(scopes ...string) identity.Caller {
	return identity.Caller{Subject: event.Subject{Issuer: "i", SubjectID: "s", Tenant: "acme", Lane: "api-key", Kind: "user"}, Scopes: scopes}
}

// allBut is every scope that a rule asks for, but one.
func allBut(scope string) []string {
	var out []string
	for _, r := range Rules() {
		if r.Scope != scope {
			out = append(out, r.Scope)
		}
	}
	return out
}

func takesRun(m reflect.Method) bool {
	for i := range m.Type.NumIn() {
		if m.Type.In(i) == reflect.TypeFor[ids.Run]() {
			return true
		}
	}
	return false
}

// call calls a use case of a host that has nothing but the front door: whatever gets
// past it panics, which is a failure.
func call(t *testing.T, m reflect.Method, c identity.Caller) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("Host.%s is past its door: %v", m.Name, p)
		}
	}()
	worker := Webhooks{Worker: &webhook.Worker{}}
	in := []reflect.Value{reflect.ValueOf(&Host{clock: clock.System{}, cfg: Config{Webhooks: worker, Limits: DefaultLimits()}})}
	for i := 1; i < m.Type.NumIn(); i++ {
		switch at := m.Type.In(i); at {
		case callerType:
			in = append(in, reflect.ValueOf(c))
		case reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(t.Context()))
		case reflect.TypeFor[ids.Run]():
			in = append(in, reflect.ValueOf(ids.Run{Tenant: "other", Opaque: "0123456789abcdef"}))
		default:
			in = append(in, reflect.Zero(at))
		}
	}
	for _, out := range m.Func.Call(in) {
		if e, ok := out.Interface().(error); ok {
			err = e
		}
	}
	return err
}
