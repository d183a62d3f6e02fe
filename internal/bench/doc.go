// Package bench measures the built binary on the machine it runs on, as a client
// over loopback sees it, and beside each figure the floor: what the same bytes
// cost when they are moved by the same driver or the same HTTP server and
// nothing else. Machines differ and are shared, so the ratio of the two, taken
// in one run, is what can be compared.
//
// The load is made by the measuring process itself, with prebuilt requests over
// plain connections, so that as little as possible of the machine goes into
// making it; what it does use is reported, too. The package knows the host only
// by its command line and its wire. It is not part of the product.
package bench
