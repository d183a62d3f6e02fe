// Package flow owns workflow definitions: their JSON shape (the protocol's
// workflow-definition schema), what makes one valid, and the compiled graph the
// run core walks: dependency order, loops and their bodies, trigger rules,
// bound inputs and edge conditions.
//
// It must not know runs, stores or time. A definition is immutable once parsed.
package flow
