package fermata_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/conformance"
)

func TestEgressCAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public, _, err := conformance.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	good, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	for name, text := range map[string][]byte{good: public, empty: []byte("nothing")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{empty, filepath.Join(dir, "absent.pem")} {
		if _, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), EgressCAFile: bad}); err == nil || !strings.Contains(err.Error(), "EgressCAFile") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	h, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), EgressCAFile: good})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
