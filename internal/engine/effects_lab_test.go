package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// outside is the world a test's effects happen in: it counts them by the key they
// come with.
type outside struct {
	mu    sync.Mutex
	keys  []string
	count map[string]int
	do    func(ctx context.Context, key string, n int) (json.RawMessage, error) // n: how often the key has come
}

func (o *outside) perform(ctx context.Context, key string) (json.RawMessage, error) {
	o.mu.Lock()
	if o.count == nil {
		o.count = map[string]int{}
	}
	if o.count[key] == 0 {
		o.keys = append(o.keys, key)
	}
	o.count[key]++
	n, do := o.count[key], o.do
	o.mu.Unlock()
	if do == nil {
		return json.RawMessage(fmt.Sprintf(`{"n": %d}`, n)), nil
	}
	return do(ctx, key, n)
}

// came wants how often each key has come, in the order of their first coming.
func (o *outside) came(t *testing.T, want ...int) []string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var got []int
	for _, k := range o.keys {
		got = append(got, o.count[k])
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("effects came %v times, want %v", got, want)
	}
	return o.keys
}

var paySeam = node.Seam{Name: "test.pay", Kind: node.SeamOther, Note: "a counter in memory"}

// payer is a node type with one effect in each call, after which it does then.
func (o *outside) payer(ef node.Effect, then func(ctx context.Context, in *node.Input) error) node.Type {
	return node.Type{ID: "test.pay", Seams: []node.Seam{paySeam}, Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		out, err := in.Services.Effect(ctx, ef, o.perform)
		if err == nil && then != nil {
			err = then(ctx, in)
		}
		return node.Done(node.Outputs{"paid": out}), err
	}}
}

// effectLab is a lab in which the seams of its types are listed.
func effectLab(t *testing.T, types ...node.Type) *lab {
	l := newLab(t, types...)
	l.seams = &effect.Registry{}
	for _, n := range types {
		if err := l.seams.Add(n.Seams...); err != nil {
			t.Fatal(err)
		}
	}
	l.engine()
	return l
}

// ledger wants the states of a run's attempts.
func (l *lab) ledger(id ids.Run, want ...string) []store.EffectAttempt {
	l.t.Helper()
	list, err := l.db.Store.Effects().Attempts(context.Background(), id, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, a.State)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Fatalf("attempts %v, want %v", got, want)
	}
	return list
}

// failure is the error object of a failed run.
func (l *lab) failure(id ids.Run) (e struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
},
) {
	l.t.Helper()
	if err := json.Unmarshal(l.until(id, "failed").Error, &e); err != nil {
		l.t.Fatal(err)
	}
	return e
}
