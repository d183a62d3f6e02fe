package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
)

func TestTurns(t *testing.T) {
	var rows []Run
	for _, x := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "c2"} {
		rows = append(rows, Run{ID: ids.Run{Tenant: x[:1], Opaque: x}})
	}
	for limit, want := range map[int]string{
		0: "[a1 a2 a3 a4 b1 c1 c2]", 7: "[a1 a2 a3 a4 b1 c1 c2]", 6: "[a1 b1 c1 a2 c2 a3]", 3: "[a1 b1 c1]", 2: "[a1 b1]", 1: "[a1]",
	} {
		var got []string
		for _, r := range Turns(slices.Clone(rows), limit) {
			got = append(got, r.ID.Opaque)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d of them: %v, want %s", limit, got, want)
		}
	}
	if got := Turns(nil, 3); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
