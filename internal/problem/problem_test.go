package problem_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
)

func TestTableIsSound(t *testing.T) {
	grammar := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	seen := map[problem.Code]bool{}
	for _, r := range problem.Rows() {
		if seen[r.Code] {
			t.Errorf("%s has two rows", r.Code)
		}
		seen[r.Code] = true
		if !grammar.MatchString(string(r.Code)) {
			t.Errorf("%q is no code", r.Code)
		}
		if r.Status != 0 && (r.Status < 400 || r.Status > 599) {
			t.Errorf("%s has status %d", r.Code, r.Status)
		}
		got, ok := problem.Lookup(r.Code)
		if !ok || got != r {
			t.Errorf("Lookup(%s) = %v, %v", r.Code, got, ok)
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d codes are registered", len(seen))
	}
	if _, ok := problem.Lookup("made_up"); ok {
		t.Error("a code nobody registered is found")
	}
}

// What went wrong inside is for the log: the caller learns a code and no more.
func TestInternalErrorsSayNothing(t *testing.T) {
	cause := errors.New("open secret.db: no such table keys")
	for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause), problem.Internal(cause)} {
		p := problem.From(err)
		if p.Code != problem.InternalError {
			t.Errorf("%v became %s", err, p.Code)
		}
		if strings.Contains(p.Message, "secret.db") || len(p.Details) > 0 {
			t.Errorf("%v leaks as %q %v", err, p.Message, p.Details)
		}
		if !errors.Is(p, cause) {
			t.Errorf("%v has lost its cause", err)
		}
	}
}

func TestFromKeepsWhatIsRegistered(t *testing.T) {
	p := problem.Invalid("tags[0]", "is %d characters long", 300)
	got := problem.From(fmt.Errorf("create: %w", p))
	if got.Code != problem.ValidationError || got.Details["field"] != "tags[0]" || got.Message == "" {
		t.Errorf("%+v", got)
	}
	if !problem.Is(fmt.Errorf("x: %w", p), problem.ValidationError) || problem.Is(context.Canceled, problem.ValidationError) {
		t.Error("Is does not tell codes apart")
	}
}
