package host

import (
	"fmt"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

func TestSnapshotsKeepToTheirBound(t *testing.T) {
	run := func(i int) ids.Run { return ids.Run{Tenant: "t", Opaque: fmt.Sprintf("%016d", i)} }
	value := func(n int) jsontext.Value { return make(jsontext.Value, n) }
	c := newSnapshots(1000)
	c.put(run(0), 0, value(126)) // too large a share
	if c.get(run(0), 0) != nil {
		t.Error("one large snapshot is kept")
	}
	for i := range 20 {
		c.put(run(i), 1, value(100))
		if c.get(run(0), 1) == nil { // read each time: never the oldest
			t.Fatalf("after %d: the one in use was dropped", i)
		}
	}
	if c.bytes != 1000 || len(c.byKey) != 10 || c.order.Len() != 10 {
		t.Errorf("%d bytes, %d entries, %d in order", c.bytes, len(c.byKey), c.order.Len())
	}
	if c.get(run(1), 1) != nil || c.get(run(19), 1) == nil {
		t.Error("not the oldest went")
	}
	// A newer sequence takes the place of the older; an older one is not found.
	c.put(run(19), 2, value(50))
	if c.get(run(19), 1) != nil || len(c.get(run(19), 2)) != 50 || c.bytes != 950 {
		t.Errorf("%d bytes", c.bytes)
	}
}
