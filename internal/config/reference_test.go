package config

import (
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table in docs/configuration.md")

const (
	page  = "../../docs/configuration.md"
	begin = "<!-- settings: rewritten by go test ./internal/config -update -->\n"
	end   = "<!-- end of settings -->\n"
)

// The page shows the one table of settings, not a copy that ages.
func TestReferenceIsTheDocumentedOne(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the page has lost its markers")
	}
	want := head + begin + "\n" + strings.TrimSpace(Reference()) + "\n\n" + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(b) != want {
		t.Error("docs/configuration.md does not show the settings as they are: run go test ./internal/config -update")
	}
}

// An operator finds every relaxation on the page, under the name that a host shows.
func TestRelaxationsAreDocumented(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	private := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, r := range Relaxations(Config{AllowEgress: private, AllowWebhooks: private, ConformanceSeams: true}) {
		if row := "| `" + r.Name + "` | `" + r.Setting + "` |"; !strings.Contains(string(b), row) {
			t.Errorf("docs/configuration.md has no row %s", row)
		}
	}
}
