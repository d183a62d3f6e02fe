package engine

import (
	"encoding/json"

	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// redacted is a command without the secrets that may be in it. Everything that gets
// into a log, a snapshot or a stream comes with a command, so this is the one place.
// The log and the state are made of the same command, and stay the same.
func (e *Engine) redacted(tenant string, c run.Command) run.Command {
	r := e.cfg.Redact
	if r == nil {
		return c
	}
	text := func(s string) string { return r.Text(tenant, s) }
	value := func(v jsontext.Value) jsontext.Value { return r.JSON(tenant, v) }
	switch c := c.(type) {
	case run.Start:
		c.Inputs, c.Metadata, c.Configurable = value(c.Inputs), value(c.Metadata), value(c.Configurable)
		c.Tags = texts(c.Tags, text)
		return c
	case run.NodeResult:
		return e.redactedResult(tenant, c)
	case run.NodeChunk:
		c.Text = text(c.Text)
		return c
	case run.NodeEgress:
		c.Decision.Destination = text(c.Decision.Destination)
		return c
	case run.Resolve:
		c.Value = value(c.Value)
		return c
	case run.Cancel:
		c.Reason, c.By = text(c.Reason), text(c.By)
		return c
	case run.Pause:
		c.Reason = text(c.Reason)
		return c
	case run.Resume:
		c.Reason = text(c.Reason)
		return c
	case run.Operate:
		c.Reason = text(c.Reason)
		return c
	}
	return c // of the run's own making
}

func texts(list []string, text func(string) string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}

// redactedResult is what a call came to, without secrets: outputs, what it keeps for
// itself, what it asks for, writes, lines of the log, its error.
func (e *Engine) redactedResult(tenant string, c run.NodeResult) run.NodeResult {
	r := e.cfg.Redact
	text := func(s string) string { return r.Text(tenant, s) }
	c.Result = c.Result.Rewritten(text, func(v json.RawMessage) json.RawMessage { return r.JSON(tenant, v) })
	for i := range c.Writes {
		c.Writes[i].Value = r.JSON(tenant, c.Writes[i].Value)
	}
	for i := range c.Logs {
		l := &c.Logs[i]
		l.Message, l.Fields = text(l.Message), e.redactedFields(tenant, l.Fields)
	}
	if c.Err != nil {
		c.Err = e.redactedError(tenant, c.Err)
	}
	return c
}

func (e *Engine) redactedError(tenant string, err *node.Error) *node.Error {
	out := *err
	out.Message, out.Details = e.cfg.Redact.Text(tenant, err.Message), e.redactedFields(tenant, err.Details)
	return &out
}

func (e *Engine) redactedFields(tenant string, m map[string]any) map[string]any {
	return cleanFields(e.cfg.Redact.Values(tenant, m))
}
