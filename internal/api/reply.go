package api

import (
	"net/http"
	"strconv"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Refusal is a refusal as a wire writes it: the closed envelope and its status
// (spec v2 errors.md §The envelope; v1 has the same shape).
type Refusal struct {
	Status  int            `json:"-"`
	Error   string         `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

// Wording writes a refusal in the words of one major.
type Wording func(*problem.Error) Refusal

// Plain is the wording of this major: the registry as it is.
func Plain(e *problem.Error) Refusal {
	return Refusal{e.Status(), string(e.Code), e.Message, e.Details}
}

// Envelope encodes a refusal.
func Envelope(e *problem.Error) jsontext.Value { return Plain(e).Envelope() }

// Envelope encodes a refusal.
func (r Refusal) Envelope() jsontext.Value {
	// A message may quote bytes of the request that are no UTF-8: they become U+FFFD.
	b, err := json.Marshal(r, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return jsontext.Value(`{"error":"internal_error","message":"The refusal could not be encoded."}`)
	}
	return b
}

// Fail answers with a refusal at its registered status.
func Fail(w http.ResponseWriter, e *problem.Error) { Refuse(w, e, Plain(e)) }

// Refuse answers with an error in the words of a wire.
func Refuse(w http.ResponseWriter, e *problem.Error, r Refusal) {
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(RetrySeconds(e), 10))
	}
	if r.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	// What a handler had promised about its answer does not hold for this one.
	for _, name := range []string{"ETag", "Location", "Cache-Control"} {
		h.Del(name)
	}
	write(w, r.Status, r.Envelope())
}

// RetrySeconds is when to come again, in whole seconds, at least one.
func RetrySeconds(e *problem.Error) int64 { return max(int64(e.RetryAfter.Seconds()+0.999), 1) }

// Tagged answers with a document under its ETag, or with 304 if the caller has it.
func Tagged(w http.ResponseWriter, r *Request, etag string, doc []byte) error {
	w.Header().Set("ETag", etag)
	if Matches(r.Header, etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return JSON(w, http.StatusOK, jsontext.Value(doc))
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
