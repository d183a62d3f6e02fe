// Package identity turns a credential into a caller: who it is, for which
// tenant, with which scopes (spec v2 identity.md §2). A Pipeline asks its lanes, one
// file each: API keys, tokens of OAuth and OpenID Connect issuers, client
// certificates, and those of an embedder. A new one implements Lane and joins Build.
//
// It must not decide what a caller may do: that is internal/host's alone. It calls
// issuers only through what it is given (Outside).
package identity
