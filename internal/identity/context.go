package identity

import (
	"context"

	"github.com/fermata-run/fermata/internal/event"
)

type callerKey struct{}

// WithCaller marks a request of this very process as made by a caller who needs
// no credential, because whoever can call it has the store in hand anyway. A
// request from the network cannot carry the mark.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// FromContext finds the caller of a request made within this process.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Local is the caller of a request made within this process: every right in
// one tenant, and over the host.
func Local(tenant string) Caller {
	return Caller{
		Subject: event.Subject{Issuer: KeyRealm, SubjectID: "in-process", Tenant: tenant, Lane: "api-key", Kind: "user"},
		Scopes:  []string{allScopes, HostAdmin},
	}
}
