// Package vault owns encryption at rest: a master key outside the data wraps data
// keys, one for each tenant and one for the host, and these seal what is secret in
// the store. It wraps a store.Store, so that nothing above it sees a sealed value
// and nothing below it an open one.
//
// It must not know who may use a credential (internal/host says so), or what one is
// used for.
package vault
