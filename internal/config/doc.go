// Package config owns what an operator may set: one table of settings, each with
// one name for its flag, its environment variable and its member in a file, read
// with the precedence flag, environment, file, default.
//
// A new setting is one member of Config and one row in settings.go. Flags,
// environment names, the reference for the documentation and what `fermata
// config` prints all come from the row.
//
// It must not know what a setting does beyond what makes its value valid.
package config
