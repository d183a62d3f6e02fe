package fermata_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
)

// A production host has no relaxation, however it is put together.
func TestModeHoldsForEmbeddedHosts(t *testing.T) {
	open := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tc := range []struct {
		mode string
		want string // of the refusal; empty for none
	}{
		{"", ""}, {"development", ""},
		{"production", "allow-egress: nodes may call 10.0.0.0/8"},
		{"prod", `Config.Mode "prod" is not development or production`},
	} {
		h, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), Mode: tc.mode, AllowEgress: open})
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q: %v", tc.mode, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := h.Relaxations(); len(r) != 1 || r[0].Name != "egress-private-ranges" {
			t.Errorf("%q: %+v", tc.mode, r)
		}
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
