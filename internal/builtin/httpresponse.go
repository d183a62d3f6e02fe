package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a body that is handed on as JSON. A deeper one
// is handed on as the text it is.
const maxDepth = 128

func responseOutputs(resp *http.Response, body []byte) map[string]json.RawMessage {
	value, encoding := decodeBody(resp.Header.Get("Content-Type"), body)
	return map[string]json.RawMessage{
		"status":   position(resp.StatusCode),
		"headers":  headersOf(resp.Header),
		"body":     value,
		"encoding": quote(encoding),
		"url":      quote(bare(resp.Request.URL)),
	}
}

// decodeBody hands a body on as JSON if it says it is JSON and is, else as text,
// else as base64.
func decodeBody(contentType string, body []byte) (value json.RawMessage, encoding string) {
	if isJSON(contentType) {
		text := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
		if len(text) == 0 {
			return json.RawMessage("null"), "json"
		}
		if depth(text) <= maxDepth && jsontext.Value(text).IsValid() {
			return text, "json"
		}
	}
	if utf8.Valid(body) {
		return quote(string(body)), "text"
	}
	return quote(base64.StdEncoding.EncodeToString(body)), "base64"
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// depth is how deeply a JSON text is nested, at most.
func depth(text []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// headersOf writes the header with its names in lower case. Cookies are left
// out: they are the server's credentials for a browser, and the run's log is no
// place for them.
func headersOf(h http.Header) json.RawMessage {
	o := make(object, 0, len(h))
	for _, name := range sortedKeys(h) {
		if name != "Set-Cookie" && name != "Set-Cookie2" {
			o = append(o, pair{strings.ToLower(name), quote(strings.Join(h[name], ", "))})
		}
	}
	return o.raw()
}

// bare is a URL without its query and fragment, which may hold secrets.
func bare(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.ForceQuery, c.Fragment, c.RawFragment = nil, "", false, "", ""
	return c.String()
}
