package openapi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
)

var (
	methods  = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}
	template = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9]*)\}`)
)

// check refuses a row that cannot stand beside the others. It returns the method
// as OpenAPI spells it and the names of the path's parameters in order.
func (b *builder) check(r *api.Route) (method string, names []string, err error) {
	method = strings.ToLower(r.Method)
	if !slices.Contains(methods, method) {
		return "", nil, errors.New("no such method")
	}
	if r.ID == "" {
		return "", nil, errors.New("no operationId")
	}
	here := r.Method + " " + r.Pattern
	if other, taken := b.ids[r.ID]; taken {
		return "", nil, fmt.Errorf("operationId %s belongs to %s", r.ID, other)
	}
	b.ids[r.ID] = here
	if names, err = pathNames(r.Pattern); err != nil {
		return "", nil, err
	}
	// Two paths that differ only in their parameters' names are the same path.
	shape := template.ReplaceAllString(r.Pattern, "{}")
	if other, ok := b.shapes[shape]; ok && other != r.Pattern {
		return "", nil, fmt.Errorf("the path is also written %s", other)
	}
	b.shapes[shape] = r.Pattern
	if b.doc.Paths[r.Pattern][method] != nil {
		return "", nil, errors.New("the operation is listed twice")
	}
	return method, names, nil
}

func pathNames(pattern string) ([]string, error) {
	if !strings.HasPrefix(pattern, "/") {
		return nil, errors.New("the path does not start with a slash")
	}
	var names []string
	for _, m := range template.FindAllStringSubmatch(pattern, -1) {
		if slices.Contains(names, m[1]) {
			return nil, fmt.Errorf("parameter %s occurs twice", m[1])
		}
		names = append(names, m[1])
	}
	if strings.ContainsAny(template.ReplaceAllString(pattern, ""), "{}?#") {
		return nil, errors.New("the path has a malformed parameter")
	}
	return names, nil
}
