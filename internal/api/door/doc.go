// Package door is what every wire of the protocol has behind its route table and
// before its operations: who asks, whether he is let in, in which tenant, what he
// may be shown, and that a request with an Idempotency-Key happens once. It owns no
// operation and no shape of an answer.
package door
