package host

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// hostPurpose marks, among the host's own secrets, the one whose id names the
// host. It signs nothing.
const hostPurpose = "host-id"

// hostID is this host's name among hosts. It is made once and stays.
type hostID struct {
	store store.Secrets
	mu    sync.Mutex
	known string
}

func (h *hostID) get(ctx context.Context, now func() store.Secret) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known != "" {
		return h.known, nil
	}
	list, err := h.store.List(ctx, hostPurpose)
	if err == nil && len(list) == 0 {
		if err = h.store.Add(ctx, now()); errors.Is(err, store.ErrExists) {
			err = nil
		}
		if err == nil {
			list, err = h.store.List(ctx, hostPurpose)
		}
	}
	if err != nil || len(list) == 0 {
		return "", err
	}
	h.known = list[len(list)-1].ID // the oldest: of two replicas that made one, both take it
	return h.known, nil
}

// HostID names this host, the same at every start.
func (h *Host) HostID(ctx context.Context) (string, error) {
	return h.id.get(ctx, func() store.Secret {
		return store.Secret{Purpose: hostPurpose, ID: "fermata-" + strings.ToLower(rand.Text()), Value: []byte{0}, CreatedAt: h.clock.Now()}
	})
}

// Ancestry says which run dispatched another (spec v2 runs.md §Diff and ancestry).
type Ancestry struct {
	RunID  string  `json:"runId"`
	HostID string  `json:"hostId"`
	Parent *Parent `json:"parent"`
}

// Parent is the run that dispatched another, on this host.
type Parent struct {
	RunID  string `json:"runId"`
	HostID string `json:"hostId"`
	Cause  string `json:"cause"` // core.subWorkflow or core.dispatch
}

// Ancestry reads who dispatched a run. A fork was dispatched by nobody: where it
// comes from is the business of its own log, see Lineage.
func (h *Host) Ancestry(ctx context.Context, c identity.Caller, id ids.Run) (Ancestry, error) {
	row, err := h.Head(ctx, c, id)
	if err != nil {
		return Ancestry{}, err
	}
	out := Ancestry{RunID: id.String()}
	if out.HostID, err = h.HostID(ctx); err != nil {
		return Ancestry{}, err
	}
	if row.Parent.IsZero() {
		return out, nil
	}
	out.Parent = &Parent{RunID: row.Parent.String(), HostID: out.HostID, Cause: "core.dispatch"}
	if p, err := h.store.Runs().Get(ctx, row.Parent); err == nil {
		wf, err := h.engine.Definitions().Get(ctx, p.ID.Tenant, p.WorkflowID, p.WorkflowVersion)
		if err != nil {
			return Ancestry{}, err
		}
		if step, ok := wf.Step(row.ParentNode); ok && step.Type.ID == "core.subWorkflow" {
			out.Parent.Cause = step.Type.ID
		}
	}
	return out, nil
}

// Seams lists the ways out of this host, all of them guarded (spec v2 replay.md
// §The effect-seam manifest).
func (h *Host) Seams(c identity.Caller) ([]effect.Seam, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return nil, err
	}
	return h.cfg.Seams.All(), nil
}

// Lineage is where a fork comes from; Mode is empty for a run that is none.
type Lineage struct {
	SourceRunID string `json:"sourceRunId"`
	FromSeq     int64  `json:"fromSeq"`
	Mode        string `json:"mode"`
}

// Lineage reads where a fork comes from, nil for a run that is none.
func (h *Host) Lineage(ctx context.Context, c identity.Caller, id ids.Run) (*Lineage, error) {
	row, err := h.Head(ctx, c, id)
	if err != nil || row.ForkMode == "" {
		return nil, err
	}
	return &Lineage{SourceRunID: row.ForkSource.String(), FromSeq: row.ForkSeq, Mode: row.ForkMode}, nil
}
