package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
)

type parameter struct {
	Ref         string `json:"$ref,omitzero"`
	Name        string `json:"name,omitzero"`
	In          string `json:"in,omitzero"`
	Required    bool   `json:"required,omitzero"`
	Description string `json:"description,omitzero"`
	Schema      any    `json:"schema,omitzero"`
}

// kinds says of which kind of id a path parameter is, by its name. A name that is
// not here is plain text.
var kinds = map[string]string{
	"runId": "runId", "interruptId": "interruptId", "effectId": "effectId", "deliveryId": "deliveryId",
	"subscriptionId": "subscriptionId", "webhookId": "subscriptionId",
	"nodeId": "nodeId", "workflowId": "workflowId", "agentId": "agentId", "typeId": "typeId",
	"tenantId": "tenantId", "workspaceId": "workspaceId", "keyId": "keyId",
}

// bound are the kinds that hold a slash: they travel as one segment, projected.
var bound = []string{"runId", "interruptId", "effectId", "deliveryId", "subscriptionId"}

// parameters lists an operation's parameters: of the path in its order, then
// query and headers in the row's order, then the version.
func (b *builder) parameters(r *api.Route, names []string) ([]parameter, error) {
	var out []parameter
	for _, name := range names {
		p, err := b.pathParameter(name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	for _, group := range []struct {
		in     string
		params []api.Param
	}{{"query", r.Query}, {"header", r.Headers}} {
		for _, param := range group.params {
			p, err := b.named(group.in, param)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	version := func(p parameter) bool { return p.In == "header" && strings.EqualFold(p.Name, versionKey) }
	if r.Protocol && !slices.ContainsFunc(out, version) {
		b.doc.Components.Parameters[versionName] = parameter{
			Name: versionKey, In: "header", Description: "The version of the protocol the caller speaks.",
			Schema: map[string]any{"type": "string", "pattern": versionForm},
		}
		out = append(out, parameter{Ref: "#/components/parameters/" + versionName})
	}
	return out, unique(out)
}

func (b *builder) pathParameter(name string) (parameter, error) {
	p := parameter{Name: name, In: "path", Required: true, Schema: map[string]any{"type": "string", "minLength": 1}}
	kind, ok := kinds[name]
	if !ok {
		return p, nil
	}
	s, err := b.schemas.ref("ids", kind)
	if err != nil {
		return p, err
	}
	p.Schema = s
	if slices.Contains(bound, kind) {
		segment, err := b.schemas.ref("ids", "projected")
		if err != nil {
			return p, err
		}
		p.Description = "The id, projected onto one segment or with its slash percent-encoded."
		p.Schema = map[string]any{"anyOf": []any{s, segment}}
	}
	return p, nil
}

func (b *builder) named(in string, param api.Param) (parameter, error) {
	p := parameter{Name: param.Name, In: in, Required: param.Required, Description: param.Description}
	if param.Schema == "" {
		p.Schema = map[string]any{"type": "string"}
		return p, nil
	}
	s, err := b.schemas.use(param.Schema)
	if err != nil {
		return p, fmt.Errorf("%s parameter %s: %w", in, param.Name, err)
	}
	p.Schema = s
	return p, nil
}

// unique refuses a parameter without a name, and two of one name in one place.
func unique(params []parameter) error {
	seen := map[string]bool{}
	for _, p := range params {
		key := p.In + " parameter " + p.Name
		if p.Ref != "" {
			continue
		}
		if p.Name == "" || seen[key] {
			return fmt.Errorf("%s: declared twice, or without a name", key)
		}
		seen[key] = true
	}
	return nil
}
