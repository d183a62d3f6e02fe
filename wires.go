package fermata

import (
	"errors"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/api/gate"
	"github.com/fermata-run/fermata/internal/api/overlap"
	v2 "github.com/fermata-run/fermata/internal/api/v2"
	"github.com/fermata-run/fermata/internal/webhook"
)

// olderVersion is the version of the protocol served beside this one, if it is
// configured.
func (c *Config) olderVersion() (string, error) {
	if !c.V1 {
		return "", nil
	}
	o, ok := overlap.Registered()
	if !ok {
		return "", errors.New("fermata: Config.V1 is set, and this program was built without v1")
	}
	return o.Version, nil
}

// base is the URL under which the world calls the API, if anybody has said.
func (c *Config) base() string { return strings.TrimSuffix(c.Lanes.PublicURL, "/") }

// olderForm is the form of deliveries to receivers of the older major, if that is served.
func (c *Config) olderForm() webhook.Form {
	o, ok := overlap.Registered()
	if !c.V1 || !ok || o.Hooks == nil {
		return nil
	}
	return o.Hooks(Version, c.base())
}

// openWires puts the protocol's wires before the host. They share one gate and one
// capacity: a bound is the host's, whichever way requests come in.
func (h *Host) openWires() {
	e := h.bounds.Edge
	d := door.Config{
		Host: h.host, Auth: h.lanes, Resource: h.lanes.Resource(), Gate: gate.New(h.gate()), Redact: h.redact, BareIDs: h.cfg.V1, Recheck: h.cfg.recheck,
	}
	room := api.NewCapacity(e.MaxCalls, e.MaxStreams, h.cfg.Limits.MaxBodyMemory)
	h.api = v2.New(v2.Config{Door: door.New(d), Log: h.cfg.Logger, Version: Version, Capacity: room, Timeout: e.RequestTimeout})
	if !h.cfg.V1 {
		return
	}
	o, _ := overlap.Registered()
	older := o.New(overlap.Config{Door: d, Log: h.cfg.Logger, Version: Version, Base: h.cfg.base(), Capacity: room, Timeout: e.RequestTimeout})
	h.api = &overlap.Pair{Newer: h.api, Older: older, Prefix: o.Prefix, Major: api.Major(o.Version)}
}
