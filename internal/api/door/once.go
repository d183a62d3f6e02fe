package door

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// KeyForm is the grammar of an Idempotency-Key, and its words.
type KeyForm struct {
	Pattern string // a regular expression
	Says    string

	compiled *regexp.Regexp
}

// NewKeyForm makes a form.
func NewKeyForm(pattern, says string) KeyForm {
	return KeyForm{pattern, says, regexp.MustCompile(pattern)}
}

// Key is the form of this major (spec v2 idempotency.md §Layer 1). Whether a key was
// drawn at random cannot be seen from it.
var Key = NewKeyForm(`^[A-Za-z0-9._~-]{22,128}$`, "want one Idempotency-Key of 22 to 128 of A-Z a-z 0-9 . _ ~ -")

// Param documents the header on every operation that honours it.
func (k *KeyForm) Param() api.Param {
	return api.Param{
		Name:        api.KeyHeader,
		Description: "Names this request, so that sending it again does nothing twice. At least 128 random bits.",
		Schema:      `{"type":"string","pattern":"` + k.Pattern + `"}`,
	}
}

// Once lets an operation that changes something happen at most once for the
// caller's key. Without a key, every request is one of its own.
func (d *Door) Once(w http.ResponseWriter, r *api.Request, c identity.Caller, h Handler) error {
	values := r.Header.Values(api.KeyHeader)
	if len(values) == 0 {
		return h(w, r, c)
	}
	if len(values) > 1 || !d.Key.compiled.MatchString(values[0]) {
		return problem.New(problem.IdempotencyKeyInvalid, "%s", d.Key.Says).With("header", api.KeyHeader)
	}
	var body []byte
	if r.Route.Body != nil {
		// What cannot be read has no digest, and nothing comes of it.
		var err error
		if body, err = api.ReadBody(w, r.Request, d.Host.Limits().MaxBodyBytes); err != nil {
			return err
		}
	}
	k := host.Keyed{Scope: r.Route.Scope, Endpoint: r.Endpoint(), Key: values[0], Digest: r.Digest(body, who(r, c)...)}
	out, replayed, err := d.Host.Once(r.Context(), c, k, func(ctx context.Context) (store.Outcome, error) {
		return d.record(ctx, r, c, body, h)
	})
	if err != nil {
		return err
	}
	if replayed {
		w.Header().Set(api.ReplayHeader, "true")
	}
	return api.Send(w, out)
}

// who is part of what a person's answer says: the same words of somebody else
// are another answer, and must not pass for a repetition.
func who(r *api.Request, c identity.Caller) []string {
	if r.Route.Scope != identity.ApprovalsRespond {
		return nil
	}
	return []string{c.Subject.Issuer, c.Subject.SubjectID}
}

// record calls a handler with a body that has been read already, and takes its
// answer down. A refusal is taken down as the envelope it is answered with.
func (d *Door) record(ctx context.Context, r *api.Request, c identity.Caller, body []byte, h Handler) (store.Outcome, error) {
	again := *r
	again.Request = r.WithContext(ctx)
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	rec := api.NewRecorder()
	refused := h(rec, &again, c)
	if refused != nil {
		rec = api.NewRecorder()
		e := problem.From(refused)
		d.Challenge(rec.Header(), r.Request, e)
		api.Refuse(rec, e, d.Wording(e))
	}
	out, err := rec.Outcome()
	if err != nil {
		return out, err
	}
	return out, refused
}
