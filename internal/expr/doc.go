// Package expr owns the expression language of workflow definitions: edge
// conditions, input bindings and transforms.
//
// A source that is only a member path ("variables.order.id",
// `nodes.fetch.outputs.body["x y"][0]`) never meets an evaluator: it selects
// bytes, so a 40-digit number or 1e400 leaves exactly as it came. Everything
// else is CEL with the standard macros, optional types and the strings, math
// and lists extensions, evaluated over raw JSON whose members are decoded only
// when they are touched.
//
// The rules that differ from plain CEL, and why:
//
//   - The top-level names are fixed (see Names); one that the scope does not
//     hold reads as null, so has(error.code) is false when there is no error.
//   - Numbers mix in arithmetic, as they do in comparisons: price * 1.2 must
//     not fail on the day the price is 10 and not 10.5.
//   - Evaluation is a function of its inputs alone. There is no clock, maps
//     built by an expression iterate in key order, and the overloads that read
//     the machine's time zone database are left out: a replica with another
//     zone file would decide otherwise from the same log.
//   - Every evaluation is bounded (see the limits in limits.go): by CEL's cost,
//     by a check of the size of an operation before it runs, by the bytes
//     of input it may walk and by the size of its result.
//
// Programs and tests are immutable and safe for concurrent use. The CEL
// environment is built by the first source that needs it, once.
//
// The package must not know events, runs, stores, or how a definition is laid
// out. Its callers have already refused JSON that is malformed, too deep or has
// duplicate names; on such input nothing panics, but which member wins is not
// promised.
package expr
