// Package webhook sends events out (spec v2 webhooks.md): it says which events a
// subscription wants, makes and signs the requests, and works off the store's
// queue of deliveries with retries, a bound for every endpoint, and a share for
// every tenant.
//
// It opens no connection but through internal/egress, knows no caller, and
// authorizes nobody: who may subscribe is decided in internal/host.
package webhook
