package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type filterConfig struct {
	Items json.RawMessage `json:"items"`
	Where string          `json:"where"`
}

func flowFilter() node.Type {
	return node.Type{
		ID:           "core.flow.filter",
		Description:  "Keeps the items of a list for which an expression is true.",
		Pure:         true,
		ConfigSchema: closed(`"items":`+itemsType+`,"where":`+expressionType, "where"),
		Check: func(c node.CheckContext) error {
			var cfg filterConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			if err := checkItems(c, cfg.Items); err != nil {
				return err
			}
			return compiles(c, "config.where", cfg.Where, "item", "index")
		},
		Ports: puts("items", "count"),
		Run:   runFilter,
	}
}

func runFilter(ctx context.Context, in *node.Input) (node.Result, error) {
	var cfg filterConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if cfg.Where == "" {
		return node.Result{}, badMember("where", "is missing")
	}
	s := newScope(in)
	list, err := s.items(cfg.Items)
	if err != nil {
		return node.Result{}, err
	}
	kept := list[:0:0]
	for i, item := range list {
		if ctx.Err() != nil {
			return node.Result{}, ctx.Err()
		}
		keep, err := s.truth("config.where", cfg.Where, names{"item": item, "index": position(i)})
		if err != nil {
			return node.Result{}, atIndex(err, i)
		}
		if keep {
			kept = append(kept, item)
		}
	}
	return node.DoneRaw(map[string]json.RawMessage{"items": array(kept), "count": position(len(kept))}), nil
}
