package identity

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// recheck asks the issuer whether a token is still good (RFC 7662). An issuer that
// does not answer lets nobody in.
func (t *trusted) recheck(ctx context.Context, token string) error {
	in := t.Introspection
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	var answer introspection
	err := t.out.exchange(ctx, http.MethodPost, in.URL, form, func(r *http.Request) {
		// RFC 6749 §2.3.1: both are form-encoded before they are joined.
		r.SetBasicAuth(url.QueryEscape(in.ClientID), url.QueryEscape(in.Secret))
	}, &answer)
	if err != nil {
		p := problem.New(problem.ServiceUnavailable, "the credential's issuer cannot be asked about it now")
		p.Cause, p.RetryAfter = err, 5*time.Second
		return p
	}
	if !answer.Active {
		return problem.New(problem.CredentialRevoked, "the credential is no longer good at its issuer")
	}
	return nil
}
