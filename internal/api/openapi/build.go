package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Info is what the document says of the host as a whole.
type Info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitzero"`

	// Server is the base the paths are relative to; empty for where the document
	// was read.
	Server string `json:"-"`
}

// The parts of the document, in the order they are written.
type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       Info                             `json:"info"`
	Dialect    string                           `json:"jsonSchemaDialect"`
	Servers    []server                         `json:"servers,omitzero"`
	Tags       []tag                            `json:"tags,omitzero"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`
}

type server struct {
	URL string `json:"url"`
}

type tag struct {
	Name string `json:"name"`
}

type components struct {
	Schemas    map[string]any       `json:"schemas,omitzero"`
	Responses  map[string]*response `json:"responses,omitzero"`
	Parameters map[string]parameter `json:"parameters,omitzero"`
	Headers    map[string]header    `json:"headers,omitzero"`
	Security   map[string]any       `json:"securitySchemes"`
}

// builder gathers the document while the routes are walked.
type builder struct {
	doc     document
	schemas collector
	ids     map[string]string // operationId to the route that has it
	shapes  map[string]string // path without its parameters' names, to the path
	tags    map[string]bool
}

// Build makes the document, as JSON. Every route must be describable: a pattern
// with balanced braces, an operationId of its own, schemas that exist.
func Build(info Info, routes []api.Route) ([]byte, error) {
	if info.Title == "" || info.Version == "" {
		return nil, errors.New("openapi: the document needs a title and a version")
	}
	b := &builder{
		doc: document{
			OpenAPI: "3.1.0", Info: info, Dialect: "https://json-schema.org/draft/2020-12/schema",
			Paths: map[string]map[string]*operation{},
			Components: components{
				Responses: map[string]*response{}, Parameters: map[string]parameter{}, Headers: map[string]header{},
				Security: map[string]any{securityName: map[string]any{
					"type": "http", "scheme": "bearer", "description": "A credential of this host; it carries scopes.",
				}},
			},
		},
		schemas: collector{out: map[string]any{}},
		ids:     map[string]string{}, shapes: map[string]string{}, tags: map[string]bool{},
	}
	if info.Server != "" {
		b.doc.Servers = []server{{URL: info.Server}}
	}
	for i := range routes {
		if err := b.add(&routes[i]); err != nil {
			return nil, fmt.Errorf("openapi: %s %s: %w", routes[i].Method, routes[i].Pattern, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.tags)) {
		b.doc.Tags = append(b.doc.Tags, tag{name})
	}
	b.doc.Components.Schemas = b.schemas.out
	return json.Marshal(b.doc, json.Deterministic(true), jsontext.WithIndent("  "))
}

func (b *builder) add(r *api.Route) error {
	method, names, err := b.check(r)
	if err != nil {
		return err
	}
	op := &operation{
		ID: r.ID, Summary: r.Summary, Spec: r.Spec, Tags: []string{tagOf(r.Pattern)},
		Security: securityOf(r.Scope), Responses: map[string]*response{},
	}
	b.tags[op.Tags[0]] = true
	if op.Parameters, err = b.parameters(r, names); err != nil {
		return err
	}
	if r.Body != nil {
		if op.Body, err = b.body(r.Body); err != nil {
			return err
		}
	}
	if err := b.responses(op, r); err != nil {
		return err
	}
	if b.doc.Paths[r.Pattern] == nil {
		b.doc.Paths[r.Pattern] = map[string]*operation{}
	}
	b.doc.Paths[r.Pattern][method] = op
	return nil
}

func (b *builder) body(body *api.Body) (*requestBody, error) {
	s, err := b.schemas.use(body.Schema)
	if err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	return &requestBody{Required: !body.Optional, Content: map[string]media{"application/json": {s}}}, nil
}

// responses fills in the success answers of the row, the refusals every operation
// has, those the row adds, and a default for the rest.
func (b *builder) responses(op *operation, r *api.Route) error {
	if len(r.Returns) == 0 {
		return errors.New("no success answer")
	}
	for status, answer := range r.Returns {
		res := &response{Description: answer.Description}
		if res.Description == "" {
			res.Description = http.StatusText(status)
		}
		if r.Protocol {
			b.doc.Components.Headers[versionName] = versionHeader
			res.Headers = map[string]header{versionKey: {Ref: "#/components/headers/" + versionName}}
		}
		if r.Mutates() {
			if res.Headers == nil {
				res.Headers = map[string]header{}
			}
			res.Headers[api.ReplayHeader] = replayHeader
		}
		if err := b.content(res, answer); err != nil {
			return fmt.Errorf("answer %d: %w", status, err)
		}
		op.Responses[strconv.Itoa(status)] = res
	}
	for _, status := range refusals(r) {
		name, err := b.refusal(status)
		if err != nil {
			return err
		}
		key := "default"
		if status != 0 {
			key = strconv.Itoa(status)
		}
		if _, taken := op.Responses[key]; taken {
			return fmt.Errorf("answer %s is both a success and a refusal", key)
		}
		op.Responses[key] = &response{Ref: "#/components/responses/" + name}
	}
	return nil
}
