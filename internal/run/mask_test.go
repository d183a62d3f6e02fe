package run_test

import (
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

// TestHashIsTheTenantsOwn masks one value for two tenants under one host's secret,
// and without a secret.
func TestHashIsTheTenantsOwn(t *testing.T) {
	wf, err := flow.Load([]byte(`{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[],"triggers":[],"variables":[{"name":"pin","type":"string","sensitive":true}],"settings":{},"metadata":{"complianceConfig":{"maskingMode":"hash"}}}`), types())
	if err != nil {
		t.Fatal(err)
	}
	masked := func(tenant string, secret []byte) string {
		s := run.New(ids.Run{Tenant: tenant, Opaque: "run-0000000000000001"}, wf).MaskWith(secret)
		if _, err := run.Decide(s, run.Start{Inputs: jsontext.Value(`{"pin":"1234"}`)}, run.Env{Now: epoch}); err != nil {
			t.Fatal(err)
		}
		return string(s.Snapshot().Variables)
	}
	one, two := masked("acme", []byte("secret")), masked("other", []byte("secret"))
	if one == two || one != masked("acme", []byte("secret")) || one == masked("acme", []byte("another")) {
		t.Errorf("acme %s, other %s", one, two)
	}
	if got := masked("acme", nil); got != `{"pin":"[REDACTED]"}` {
		t.Errorf("without a secret: %s", got)
	}
}
