// Package limit counts what parties use, so that one of them at its bound leaves
// the rest to the others: Buckets for how often, Shares for how much at a time, and
// Fair for who comes next.
//
// It knows neither requests nor tenants: a party is a key, and what its bound is
// the caller says. Everything it keeps is bounded: a party that uses nothing takes
// no memory.
package limit
