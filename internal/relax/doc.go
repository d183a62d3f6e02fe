// Package relax names what an operator may loosen: one value for every relaxation
// that is in force, and the mode that forbids them all.
//
// A relaxation is a setting of the operator and never a member of discovery (spec
// v2 security-defaults.md §Relaxations). It is said at the start, listed by the
// host, and recorded by whoever certifies the host.
//
// A new one is one function in relaxations.go that turns the setting's value into
// Relaxations, called where the setting is known: config.Relaxations and
// fermata.Config.
package relax
