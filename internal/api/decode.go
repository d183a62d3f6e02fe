package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep the containers of a request body may nest. It leaves
// every decoder behind the door far from its own limit.
const MaxDepth = event.MaxDepth

// bodyTimeout is how long a request body may take to come in.
const bodyTimeout = 2 * time.Minute

// ReadBody reads a JSON request body: at most limit bytes, of the right media
// type. An absent body is nil.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, problem.New(problem.UnsupportedMediaType, "the content encoding %q is not accepted", enc).With("contentEncoding", enc)
	}
	if r.ContentLength > int64(limit) {
		drain(w, r)
		return nil, tooLarge(limit)
	}
	// A body that trickles in would hold its place among the calls for ever. A
	// writer that cannot have deadlines (a test's recorder) goes without.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := readAll(http.MaxBytesReader(w, r.Body, int64(limit)), r.Body)
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			drain(w, r)
			return nil, tooLarge(limit)
		}
		if errors.Is(err, errNoRoom) {
			drain(w, r)
			return nil, noRoom()
		}
		return nil, problem.Invalid("body", "the request body could not be read to its end")
	}
	if len(body) == 0 {
		return nil, nil
	}
	ct := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(ct)
	charset := strings.ToLower(params["charset"])
	if err != nil || media != "application/json" || charset != "" && charset != "utf-8" {
		return nil, problem.New(problem.UnsupportedMediaType, "want Content-Type: application/json").With("contentType", ct)
	}
	return body, nil
}

// How much of a body that is refused is still read, and for how long.
const (
	maxDrain     = 64 << 20
	drainTimeout = 10 * time.Second
)

// drain reads what is left of a body that is too large, within bounds: a client
// that sends all of it before it looks for an answer would find the connection
// reset in place of the refusal. Afterwards the connection is closed. A client
// that waits to be asked for its body (Expect) is refused before it sends any.
func drain(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if r.Header.Get("Expect") != "" {
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(drainTimeout))
	_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
	_ = rc.SetReadDeadline(time.Time{})
}

func tooLarge(limit int) error {
	return problem.New(problem.PayloadTooLarge, "the request body has more than %d bytes", limit).With("maxRequestBodyBytes", limit)
}

// Decode decodes a body strictly into v: unknown, duplicate or wrongly cased
// members, invalid UTF-8, excess depth and anything behind the value are
// refused, with details.field naming the place. Raw members of v keep their
// bytes, without white space between tokens.
func Decode(body []byte, v any) error {
	if body == nil {
		return problem.Invalid("body", "a JSON body is required")
	}
	if d := event.Depth(body); d > MaxDepth {
		return problem.Invalid("body", "nests deeper than %d levels", MaxDepth).With("maxDepth", MaxDepth)
	}
	value := jsontext.Value(body)
	if err := value.Compact(); err != nil {
		return malformed(err)
	}
	if k := value.Kind(); k != '{' {
		return problem.Invalid("body", "must be a JSON object")
	}
	if err := json.Unmarshal(value, v, json.RejectUnknownMembers(true), noNull); err != nil {
		return malformed(err)
	}
	return nil
}

var errNull = errors.New("must not be null")

// noNull refuses null wherever a value of a certain type is wanted; by itself
// the decoder would take it for an absent member. A raw member takes any value.
var noNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	if _, raw := v.(*jsontext.Value); raw || dec.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return errNull
}))

func malformed(err error) error {
	var syn *jsontext.SyntacticError
	var sem *json.SemanticError
	switch {
	case errors.As(err, &syn):
		return problem.Invalid(field(syn.JSONPointer), "malformed JSON: %v", syn.Err)
	case errors.As(err, &sem):
		if errors.Is(sem.Err, json.ErrUnknownName) {
			return problem.Invalid(field(sem.JSONPointer), "unknown member")
		}
		if sem.Err != nil {
			return problem.Invalid(field(sem.JSONPointer), "%v", sem.Err)
		}
		return problem.Invalid(field(sem.JSONPointer), "is of the wrong type")
	}
	return problem.Invalid("body", "%v", err)
}

// field writes a JSON pointer as the path of a member, "tags[2]" for "/tags/2".
func field(p jsontext.Pointer) string {
	var b strings.Builder
	for tok := range p.Tokens() {
		if index(tok) && b.Len() > 0 {
			b.WriteString("[" + tok + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(tok)
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// index reports whether a pointer's token looks like the place in an array.
func index(tok string) bool {
	return tok != "" && strings.Trim(tok, "0123456789") == "" && (tok == "0" || tok[0] != '0')
}

// CheckDepth refuses a text that nests too deep for the decoders behind it.
func CheckDepth(b []byte) error {
	if event.Depth(b) > MaxDepth {
		return problem.Invalid("body", "nests deeper than %d levels", MaxDepth).With("maxDepth", MaxDepth)
	}
	return nil
}
