// Package audit is the form of the audit log: what an entry is, how entries are
// chained by hashes, how checkpoints are signed, and how all of it is verified
// (spec v2 security-defaults.md §Audit-log integrity). A chain belongs to one
// tenant; HostChain is the operator's.
//
// It is pure: it neither reads a clock nor keeps anything. The store keeps entries,
// internal/host says what is recorded, and the same code verifies a live chain and
// an exported file.
package audit
