package host

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
)

const (
	callWorkflow = "conformance-seam-call"
	callNode     = "call"
	callType     = "core.http.request"

	// nowhere is called where the suite names no receiver: a name nobody can have
	// (RFC 2606). The ledger is what is looked at, not the delivery.
	nowhere = "https://receiver.conformance.invalid/"

	// seamPatience is how long a run of a seam may take.
	seamPatience = 30 * time.Second
)

// FireSeam runs a workflow that passes a seam once, and returns the run once it is
// over, however it ended (seam fireEffectSeam). Only seams that a node type of this
// host passes by itself can be fired: those of the HTTP request.
func (h *Host) FireSeam(ctx context.Context, c identity.Caller, seam, url string) (ids.Run, error) {
	if err := h.seam(c); err != nil {
		return ids.Run{}, err
	}
	t, ok := h.cfg.Catalog.Type(callType)
	if !ok || !passes(t, seam) {
		return ids.Run{}, problem.New(problem.NotFound, "no seam %q can be fired here", seam).With("field", "seam")
	}
	if url == "" {
		url = nowhere
	}
	return h.call(ctx, c, url, 0)
}

func passes(t *node.Type, seam string) bool {
	for _, s := range t.Seams {
		if s.Name == seam {
			return true
		}
	}
	return false
}

// RetryEffect has one effect at a provider, and attempts it again where the
// connection fails (seam forceEffectTransportRetry). It returns the run and the
// effect's id once the run is over.
func (h *Host) RetryEffect(ctx context.Context, c identity.Caller, url string) (run ids.Run, effect string, err error) {
	if err := h.seam(c); err != nil {
		return ids.Run{}, "", err
	}
	id, err := h.call(ctx, c, url, 3)
	if err != nil {
		return ids.Run{}, "", err
	}
	attempts, err := h.Effects(ctx, c, id)
	if err != nil {
		return ids.Run{}, "", err
	}
	if len(attempts) == 0 {
		return ids.Run{}, "", problem.Internal(errors.New("the call has left no effect in the ledger"))
	}
	return id, ids.Run{Tenant: id.Tenant, Opaque: attempts[0].EffectID}.String(), nil
}

// call runs the workflow of the seams to its end.
func (h *Host) call(ctx context.Context, c identity.Caller, url string, retries int) (ids.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, seamPatience)
	defer cancel()
	workflow := callWorkflow
	if retries > 0 {
		workflow += "-again"
	}
	err := h.ensureWorkflow(ctx, c.Tenant(), workflow, map[string]any{
		"nodes": []any{map[string]any{
			"id": callNode, "typeId": callType, "name": "call", "position": map[string]any{"x": 0, "y": 0},
			"config":   map[string]any{"method": "POST", "body": map[string]any{"conformance": true}, "timeoutMs": 10_000},
			"inputs":   map[string]any{"url": map[string]any{"type": "variable", "variableName": "url"}},
			"settings": map[string]any{"maxRetries": retries, "retryDelayMs": 50},
		}},
		"variables": []any{map[string]any{"name": "url", "type": "string", "required": true}},
	})
	if err != nil {
		return ids.Run{}, err
	}
	inputs, err := json.Marshal(map[string]string{"url": url})
	if err != nil {
		return ids.Run{}, problem.Internal(err)
	}
	made, err := h.CreateRun(ctx, c, CreateRun{WorkflowID: workflow, Inputs: inputs})
	if err != nil {
		return ids.Run{}, err
	}
	return made.ID, h.untilEnded(ctx, c, made.ID)
}

// untilEnded follows a run to its end.
func (h *Host) untilEnded(ctx context.Context, c identity.Caller, id ids.Run) error {
	log, err := h.OpenLog(ctx, c, id, -1)
	if err != nil {
		return err
	}
	defer log.Close()
	for {
		events, err := log.Next(ctx, nil)
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range events {
			switch events[i].Type {
			case event.RunCompleted, event.RunFailed, event.RunCancelled:
				return nil
			}
		}
	}
}
