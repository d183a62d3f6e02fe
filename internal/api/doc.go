// Package api owns what every wire shares: the shape of a route table row, the
// matcher that finds a row for a request (ids arrive as one projected or
// percent-encoded segment, verbs as a ":verb" suffix), strict request decoding,
// and the closed error envelope.
//
// It translates and never decides: rules live in internal/host and below.
package api
