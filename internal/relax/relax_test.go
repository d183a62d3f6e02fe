package relax_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/relax"
)

func TestProductionRefusesWhatIsRelaxed(t *testing.T) {
	open := relax.Egress([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fc00::/7")})
	if len(open) != 1 || !strings.Contains(open[0].Effect, "10.0.0.0/8, fc00::/7") {
		t.Fatalf("%+v", open)
	}
	if err := relax.Check(relax.Development, open); err != nil {
		t.Error(err)
	}
	if err := relax.Check(relax.Production, relax.Egress(nil)); err != nil {
		t.Error(err)
	}
	var refused relax.Refused
	if err := relax.Check(relax.Production, open); !errors.As(err, &refused) || refused.Setting != "allow-egress" {
		t.Errorf("%v", err)
	}
}

func TestOf(t *testing.T) {
	open := relax.Egress([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if r, ok := relax.Of(open, "allow-egress"); !ok || r.Name != "egress-private-ranges" {
		t.Errorf("%+v", r)
	}
	if _, ok := relax.Of(open, "listen"); ok {
		t.Error("found what is not there")
	}
}
