// Package v1 is the protocol's older wire, served under /v1 beside this major's and
// on the same runs (spec v2 versioning.md §5). It translates: ids lose their tenant,
// documents and codes get the shapes and names of v1. It owns no rule of how a run
// behaves. Nobody names it but one line of the root.
package v1
