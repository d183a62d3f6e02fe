// Package jsonschema owns validation against JSON Schemas that a stranger wrote:
// a workflow's author, or a caller. It wraps a complete validator (draft 2020-12
// by default, the older ones by $schema) in the guards it does not have itself.
//
// A schema is data: it cannot make the host read a file or call another (only
// references within the document and to the drafts' own metaschemas resolve), and
// it cannot make the host busy. Three things see to the latter:
//
//   - Before it is compiled, a document is held to a size, a depth, a number of
//     subschemas and of references (limits.go).
//   - Once compiled, the schemas that apply to one and the same value are counted
//     out. A reference that comes back to itself without descending into the value
//     is refused, and so is a schema whose branches multiply beyond maxChecks:
//     {"allOf": [A, A]}, with A again such a pair, doubles with every line.
//   - Recursion that does descend is legitimate (a tree, a list of lists), and how
//     often it branches depends on the value. So every validation has a budget that
//     grows with the value and no further; each schema applied to a value, each
//     element and pattern tried, takes its price from it, and when it is spent the
//     validation ends and the value is refused.
//
// Numbers are compared as exact decimals, never as floats. Patterns are RE2 and
// so linear. As drafts 2019-09 and 2020-12 say, "format" is an annotation and is
// not checked; the drafts before them check the formats they know.
//
// The package must not know what its values are for: workflows, interrupts and
// requests choose the schema and place the violation.
package jsonschema
