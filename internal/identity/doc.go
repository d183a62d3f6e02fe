// Package identity turns a credential into a caller: who it is, for which
// tenant, with which scopes (spec v2 identity.md §2). Today it holds one lane,
// API keys; the others join here behind the same Caller.
//
// It must not decide what a caller may do: that is internal/host's alone.
package identity
