// Package token owns the format of interrupt tokens: how one is written, read
// and held against a key (spec v2 identity.md §4, interrupt.md §Tokens).
//
// It is pure: keys and the time are given to it. Which keys there are, whom a
// token may be given to and what it opens is internal/host's.
package token
