// Package idptest is an identity provider for tests: it lives in the process of
// the test, on loopback, with keys made at run time. It signs whatever a test asks
// for, also what no sound provider would sign.
package idptest
