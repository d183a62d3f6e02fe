package conformance_test

import "net/http"

var v1Mutations []mutation

var v1Deliveries []struct {
	name, check string
	damage      func(*postman, *http.Request, []byte) int
}
