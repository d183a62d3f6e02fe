package fermata_test

import (
	"context"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

// An embedding program lists the ways out of its own node types; one that cannot
// be listed as it is refuses the type.
func TestSeamsOfOwnTypes(t *testing.T) {
	run := func(context.Context, *node.Input) (node.Result, error) { return node.Done(nil), nil }
	open := func(cfg fermata.Config) error {
		cfg.DataDir = t.TempDir()
		h, err := fermata.Open(t.Context(), cfg)
		if err == nil {
			err = h.Stop(t.Context())
		}
		return err
	}
	smtp := node.Seam{Name: "acme.mail.smtp", Kind: node.SeamSMTP}
	mail := node.Type{ID: "acme.mail.send", Run: run, Seams: []node.Seam{smtp}}
	bulk := node.Type{ID: "acme.mail.bulk", Run: run, Seams: []node.Seam{smtp}}
	if err := open(fermata.Config{Nodes: []node.Type{mail, bulk}, Seams: []node.Seam{{Name: "acme.bus", Kind: node.SeamQueue}}}); err != nil {
		t.Error(err)
	}
	bulk.Seams = []node.Seam{{Name: "acme.mail.smtp", Kind: node.SeamHTTP}}
	pure := mail
	pure.Pure = true
	for what, cfg := range map[string]fermata.Config{
		"two seams of one name": {Nodes: []node.Type{mail, bulk}}, "a pure type": {Nodes: []node.Type{pure}},
		"other without a note": {Seams: []node.Seam{{Name: "acme.tcp", Kind: node.SeamOther}}},
	} {
		if open(cfg) == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
