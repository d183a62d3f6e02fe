package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Capabilities is the host's discovery document.
type Capabilities struct {
	ProtocolVersion  string   `json:"protocolVersion"`
	ProtocolVersions []string `json:"protocolVersions"`
	PreferredVersion string   `json:"preferredVersion"`
	Implementation   struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Vendor  string `json:"vendor"`
	} `json:"implementation"`
	EngineVersion         int `json:"engineVersion"`
	EventLogSchemaVersion int `json:"eventLogSchemaVersion"`

	ETag   string          `json:"-"`
	Date   time.Time       `json:"-"` // the host's clock when it answered; zero if it did not say
	Raw    json.RawMessage `json:"-"` // the whole document; every family is in it
	Served string          `json:"-"` // version of the protocol the answer was given in
}

// Capabilities reads what the host serves. It needs no API key.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/.well-known/openwop", again: true})
	if err != nil {
		return nil, err
	}
	var out Capabilities
	if out.Raw, err = a.into(&out); err != nil {
		return nil, err
	}
	out.ETag, out.Served = a.header.Get("ETag"), a.header.Get("OpenWOP-Version")
	if at, err := http.ParseTime(a.header.Get("Date")); err == nil {
		out.Date = at
	}
	return &out, nil
}

// Ready reports whether the host can take on work; nil means that it can.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/ready", again: true})
	return err
}
