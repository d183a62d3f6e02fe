package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

const (
	maxRequestBytes = 4 << 20
	maxHeaders      = 100
	maxHeaderBytes  = 32 << 10
)

// httpConfig may come from the config, from ports, or from both.
type httpConfig struct {
	URL              string                     `json:"url"`
	Method           string                     `json:"method"`
	Headers          map[string]string          `json:"headers"`
	Query            map[string]json.RawMessage `json:"query"`
	Body             json.RawMessage            `json:"-"` // as the bytes it came in
	BodyText         *string                    `json:"bodyText"`
	TimeoutMs        number                     `json:"timeoutMs"`
	MaxResponseBytes number                     `json:"maxResponseBytes"`
	FollowRedirects  bool                       `json:"followRedirects"`
	ExpectStatus     json.RawMessage            `json:"expectStatus"`
	RetryOn5xx       *bool                      `json:"retryOn5xx"`

	IdempotencyKey    string  `json:"idempotencyKey"`
	Operation         string  `json:"operation"`
	IdempotencyHeader *string `json:"idempotencyHeader"`
	OnUnknownOutcome  string  `json:"onUnknownOutcome"`
}

// target is the URL with the query members added to what it holds already.
func (cfg *httpConfig) target() (string, error) {
	if cfg.URL == "" {
		return "", badMember("url", "is missing")
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return "", badMember("url", "is not a valid URL")
	}
	if len(cfg.Query) == 0 {
		return u.String(), nil
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", badMember("url", "has a query that cannot be read")
	}
	for _, name := range sortedKeys(cfg.Query) {
		values, err := queryValues("query."+name, cfg.Query[name])
		if err != nil {
			return "", err
		}
		q[name] = append(q[name], values...)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// queryValues writes one member: a list repeats it, null leaves it out.
func queryValues(field string, v json.RawMessage) ([]string, error) {
	switch kind(v) {
	case "null", "nothing":
		return nil, nil
	case "a string":
		var s string
		err := json.Unmarshal(v, &s)
		return []string{s}, err
	case "a number", "true or false":
		return []string{string(bytes.TrimSpace(v))}, nil
	case "a list":
		list, err := asList(field, v)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, item := range list {
			if kind(item) == "a list" {
				return nil, badMember(field, "must not hold lists within a list")
			}
			one, err := queryValues(field, item)
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	}
	return nil, badMember(field, "must be a string, number, true or false, or a list of them")
}

// reserved headers belong to the connection, not to the author.
var reserved = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}

// checkHeaders never quotes a value: it may be a credential.
func checkHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return badMember("headers", "has more than %d members", maxHeaders)
	}
	total := 0
	for _, name := range sortedKeys(headers) {
		value := headers[name]
		total += len(name) + len(value)
		if !isToken(name) {
			return badMember("headers", "holds a name that is not a header's")
		}
		if reserved[http.CanonicalHeaderKey(name)] {
			return badMember("headers."+name, "is not yours to set")
		}
		for i := 0; i < len(value); i++ {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return badMember("headers."+name, "holds a control character")
			}
		}
	}
	if total > maxHeaderBytes {
		return badMember("headers", "are larger than %d bytes", maxHeaderBytes)
	}
	return nil
}

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func (cfg *httpConfig) payload(method string) ([]byte, error) {
	if len(cfg.Body) == 0 && cfg.BodyText == nil {
		return nil, nil
	}
	body, field := []byte(cfg.Body), "body"
	if cfg.BodyText != nil {
		if len(cfg.Body) > 0 {
			return nil, badMember("bodyText", "cannot be given together with body")
		}
		body, field = []byte(*cfg.BodyText), "bodyText"
	}
	if method == http.MethodGet || method == http.MethodHead {
		return nil, badMember(field, "cannot be sent with %s", method)
	}
	if len(body) > maxRequestBytes {
		return nil, badMember(field, "is larger than %d bytes", maxRequestBytes)
	}
	return body, nil
}

func (p *plan) request(ctx context.Context, key string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, p.method, p.url, bytes.NewReader(p.body))
	if err != nil {
		return nil, badMember("url", "is not a valid URL")
	}
	req.Header.Set("User-Agent", "fermata")
	req.Header.Set("Accept", "application/json, */*;q=0.8")
	switch {
	case p.cfg.BodyText != nil:
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	case len(p.cfg.Body) > 0:
		req.Header.Set("Content-Type", "application/json")
	}
	if h := p.cfg.header(); h != "" && key != "" {
		req.Header.Set(h, key)
	}
	for _, name := range sortedKeys(p.cfg.Headers) {
		req.Header.Set(name, p.cfg.Headers[name])
	}
	return req, nil
}
