// Package store is the contract between the engine and a database: small
// interfaces, the records they move, and the sentinels they fail with. It holds
// no SQL and no policy: no authorization, no retention rule, no retry schedule.
//
// The conformance suite of a backend is store/storetest; a backend is one
// folder beside it.
package store
