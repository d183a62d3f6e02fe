package api

import (
	"net/http"
	"strconv"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// envelope is the one shape of every refusal (spec v2 errors.md §The envelope).
type envelope struct {
	Error   string         `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

// Envelope encodes a refusal.
func Envelope(e *problem.Error) jsontext.Value {
	// A message may quote bytes of the request that are no UTF-8: they become U+FFFD.
	b, err := json.Marshal(envelope{string(e.Code), e.Message, e.Details}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return jsontext.Value(`{"error":"internal_error","message":"The refusal could not be encoded."}`)
	}
	return b
}

// Fail answers with a refusal at its registered status.
func Fail(w http.ResponseWriter, e *problem.Error) { fail(w, e, e.Status()) }

func fail(w http.ResponseWriter, e *problem.Error, status int) {
	h := w.Header()
	if e.RetryAfter > 0 {
		secs := int64(e.RetryAfter.Seconds() + 0.999)
		h.Set("Retry-After", strconv.FormatInt(max(secs, 1), 10))
	}
	if status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	// What a handler had promised about its answer does not hold for this one.
	for _, name := range []string{"ETag", "Location", "Cache-Control"} {
		h.Del(name)
	}
	write(w, status, Envelope(e))
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, v any) error {
	if raw, ok := v.(jsontext.Value); ok {
		write(w, status, raw)
		return nil
	}
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return problem.Internal(err)
	}
	write(w, status, b)
	return nil
}

func write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has gone: there is nobody to tell
}
