package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/fermata-run/fermata/node"
)

// stock stands in for a system of the program's own: a database, a service.
type stock struct {
	mu   sync.Mutex
	left map[string]int
	done map[string]int // what was left after an effect, by its key
	busy int            // how many calls are still turned away
}

var (
	errBusy  = errors.New("the warehouse is busy")
	errEmpty = errors.New("there is not enough left")
)

// reserve takes articles out of the stock, once for each key however often it
// is called.
func (s *stock) reserve(key, sku string, count int) (left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left, again := s.done[key]; again {
		return left, nil
	}
	if s.busy > 0 {
		s.busy--
		return 0, errBusy
	}
	if s.left[sku] < count {
		return s.left[sku], errEmpty
	}
	s.left[sku] -= count
	s.done[key] = s.left[sku]
	return s.left[sku], nil
}

// reserveNode makes the stock a node type that workflows can use.
func (s *stock) reserveNode() node.Type {
	return node.Type{
		ID:          "acme.stock.reserve",
		Description: "Reserves articles in the warehouse.",
		// What a node's config may hold; a workflow with another is refused.
		ConfigSchema: []byte(`{"type":"object","additionalProperties":false,"properties":{
			"sku":{"type":"string"},"count":{"type":"integer","minimum":1}}}`),
		// The way by which its effects leave the host, so that a replay has none.
		Seams: []node.Seam{{Name: "acme.stock.db", Kind: node.SeamStorage, BranchReFires: true}},
		Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
			want := struct {
				SKU   string `json:"sku"`
				Count int    `json:"count"`
			}{Count: 1}
			if err := in.Bind(&want); err != nil { // config, and over it the input ports
				return node.Result{}, err
			}
			// Claimed before it happens, and never done again once its outcome is known.
			// The stock knows a key again, so that after a crash it may be asked twice.
			left, err := in.Services.Effect(ctx, node.Effect{InDoubt: node.RepeatInDoubt},
				func(_ context.Context, key string) (json.RawMessage, error) {
					left, err := s.reserve(key, want.SKU, want.Count)
					switch {
					case errors.Is(err, errBusy):
						return nil, node.NotDone(node.Retry(node.CodeUnavailable, "%v", err))
					case err != nil:
						return nil, node.NotDone(node.Fail("validation_error", "%s: %v", want.SKU, err))
					}
					return json.Marshal(left)
				})
			if err != nil {
				return node.Result{}, err
			}
			in.Log("info", "reserved", map[string]any{"sku": want.SKU, "count": want.Count})
			return node.Done(node.Outputs{"left": left}), nil
		},
	}
}
