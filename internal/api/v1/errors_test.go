package v1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		e      *problem.Error
		status int
		code   string
	}{
		{problem.Invalid("x", "y"), 400, "validation_error"},
		{problem.New(problem.IdempotencyKeyInvalid, "x"), 400, "validation_error"},
		{problem.New(problem.UnsupportedMediaType, "x"), 400, "validation_error"},
		{problem.New(problem.Unauthenticated, "x"), 401, "unauthenticated"},
		{problem.New(problem.Unauthenticated, "x").With("reason", "key-expired"), 401, "key_expired"},
		{problem.New(problem.CredentialRevoked, "x"), 401, "key_revoked"},
		{problem.New(problem.AudienceMismatch, "x"), 401, "unauthenticated"},
		{problem.New(problem.IDTenantMismatch, "x"), 403, "run_forbidden"},
		{problem.New(problem.RunForbidden, "x"), 403, "run_forbidden"},
		{problem.New(problem.NotFound, "x"), 404, "not_found"},
		{problem.New(problem.IdempotencyKeyMismatch, "x"), 409, "idempotency_key_mismatch"},
		{problem.New(problem.RunTerminal, "x"), 409, "run_terminal"},
		{problem.New(problem.RunExpired, "x"), 410, "not_found"},
		{problem.New(problem.CapabilityRequired, "x"), 422, "capability_required"},
		{problem.New(problem.ForkPointInvalid, "x"), 422, "validation_error"},
		{problem.New(problem.CapabilityNotProvided, "x"), 501, "capability_not_provided"},
		{problem.New(problem.EventTypeUnmapped, "x"), 500, "internal_error"},
	} {
		r := words(c.e)
		if r.Status != c.status || r.Error != c.code {
			t.Errorf("%s is %d %s, want %d %s", c.e.Code, r.Status, r.Error, c.status, c.code)
		}
	}
}

// Every registered code has a status an HTTP answer can have, and the closed envelope.
func TestWordsOfEveryCode(t *testing.T) {
	for _, row := range problem.Rows() {
		r := words(problem.New(row.Code, "text"))
		var m map[string]any
		if err := json.Unmarshal(r.Envelope(), &m); err != nil || m["error"] == "" || m["message"] != "text" || len(m) != 2 {
			t.Errorf("%s: %s, %v", row.Code, r.Envelope(), err)
		}
		if row.Status != 0 && (r.Status < 400 || r.Status > 599) {
			t.Errorf("%s has status %d", row.Code, r.Status)
		}
	}
	for code, w := range dictionary {
		if _, ok := problem.Lookup(code); !ok || w.code == "" {
			t.Errorf("%s is translated and is no code", code)
		}
	}
}

func TestRetryTimes(t *testing.T) {
	e := problem.New(problem.RateLimited, "x").With("limit", "key-rate")
	e.RetryAfter = 1500 * time.Millisecond
	if d := words(e).Details; d["retryAfterMs"] != int64(2000) || d["scope"] != "key" || e.Details["scope"] != nil {
		t.Errorf("%v, of %v", d, e.Details)
	}
	e = problem.New(problem.IdempotencyInFlight, "x")
	e.RetryAfter = time.Millisecond
	if d := words(e).Details; d["retryAfter"] != int64(1) {
		t.Errorf("%v", d)
	}
	e = problem.New(problem.RunAlreadyActive, "x").With("runId", "acme/0123456789abcdef")
	if d := words(e).Details; d["activeRunId"] != "0123456789abcdef" || d["activeHost"] != "cloud" || d["runId"] != nil {
		t.Errorf("%v", d)
	}
}
