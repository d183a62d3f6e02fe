package openapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
)

const (
	// versionKey is the header by which both sides name the protocol's version.
	versionKey   = "OpenWOP-Version"
	versionName  = "OpenWOPVersion"
	securityName = "bearer"
	versionForm  = `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`
)

type operation struct {
	ID         string                `json:"operationId"`
	Summary    string                `json:"summary,omitzero"`
	Spec       string                `json:"x-spec,omitzero"`
	Tags       []string              `json:"tags"`
	Security   []map[string][]string `json:"security"`
	Parameters []parameter           `json:"parameters,omitzero"`
	Body       *requestBody          `json:"requestBody,omitzero"`
	Responses  map[string]*response  `json:"responses"`
}

type requestBody struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type media struct {
	Schema any `json:"schema"`
}

type response struct {
	Ref         string            `json:"$ref,omitzero"`
	Description string            `json:"description,omitzero"`
	Headers     map[string]header `json:"headers,omitzero"`
	Content     map[string]media  `json:"content,omitzero"`
}

type header struct {
	Ref         string `json:"$ref,omitzero"`
	Description string `json:"description,omitzero"`
	Schema      any    `json:"schema,omitzero"`
}

var versionHeader = header{
	Description: "The version of the protocol that shaped this answer.",
	Schema:      map[string]any{"type": "string", "pattern": versionForm},
}

var replayHeader = header{
	Description: "true if this is the recorded answer to an earlier request with the same Idempotency-Key.",
	Schema:      map[string]any{"const": "true"},
}

// securityOf says which scopes a caller must hold; a public operation needs no
// credential at all.
func securityOf(scope string) []map[string][]string {
	if scope == "" {
		return []map[string][]string{}
	}
	return []map[string][]string{{securityName: strings.Fields(scope)}}
}

// tagOf groups operations by the first segment of their path.
func tagOf(pattern string) string {
	segment, _, _ := strings.Cut(strings.TrimLeft(pattern, "/."), "/")
	segment, _, _ = strings.Cut(segment, ":")
	if segment == "" {
		return "root"
	}
	return segment
}

// content describes an answer's body. An answer with a media type of its own and
// no schema is text, such as a stream of events.
func (b *builder) content(res *response, answer api.Response) error {
	if answer.Schema == "" && answer.ContentType == "" {
		return nil
	}
	mediaType := answer.ContentType
	if mediaType == "" {
		mediaType = "application/json"
	}
	var s any = map[string]any{"type": "string"}
	if answer.Schema != "" {
		var err error
		if s, err = b.schemas.use(answer.Schema); err != nil {
			return err
		}
	}
	res.Content = map[string]media{mediaType: {s}}
	return nil
}

// refusals lists the statuses an operation answers with the error envelope, 0
// standing for every other.
func refusals(r *api.Route) []int {
	statuses := []int{0, http.StatusBadRequest, http.StatusNotFound}
	if r.Scope != "" {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden)
	}
	statuses = append(statuses, r.Errors...)
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// refusal returns the name of the shared description of one refusal.
func (b *builder) refusal(status int) (string, error) {
	name, text := "Refusal", "Any other refusal."
	if status != 0 {
		text = http.StatusText(status)
		name = strings.NewReplacer(" ", "", "-", "", "'", "").Replace(text)
	}
	if b.doc.Components.Responses[name] != nil {
		return name, nil
	}
	s, err := b.schemas.use("error-envelope")
	if err != nil {
		return "", err
	}
	b.doc.Components.Headers[versionName] = versionHeader
	res := &response{
		Description: text,
		// Only operations of the protocol carry it, and refusals are shared.
		Headers: map[string]header{versionKey: {Ref: "#/components/headers/" + versionName}},
		Content: map[string]media{"application/json": {s}},
	}
	switch status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		res.Headers["Retry-After"] = header{
			Description: "Seconds to wait before trying again.",
			Schema:      map[string]any{"type": "integer", "minimum": 0},
		}
	}
	b.doc.Components.Responses[name] = res
	return name, nil
}
