// Package builtin owns the node types that come with the host: waiting,
// branching, shaping data, asking people, calling child workflows and HTTP. One
// kind is one file with one constructor, and one row in All.
//
// It must not know the engine, the store or any wire: a node here sees what any
// node sees, the API of package node, and is written as a third party would
// write it. Values are passed on as the JSON they came in; nothing travels
// through a Go float.
//
// Expressions are read from the config only, never from an input port: a port
// carries the run's data, and data must not become code.
package builtin
