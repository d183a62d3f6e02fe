// Package node is what a node written in Go implements and is given: a Type
// with a Run function, the Input of one call, and the Result it answers with.
//
// A node never touches the run's log, store or clock itself. Everything it
// decides travels in its Result, and the host records that in the same
// transaction that moves the run on. A node may be called again after a crash:
// until its outcome is recorded, a call counts as not having happened, and
// Input.EffectKey stays the same for every repetition. What a node does outside it
// does with Services.Effect, which claims the effect before it happens and knows
// afterwards what became of it.
package node
