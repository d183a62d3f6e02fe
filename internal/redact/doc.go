// Package redact owns what keeps secrets out of everything that is written, shown
// or sent: one Redactor knows the secret values this process has seen, by tenant,
// and what the host's own keys and tokens look like. Every way out goes through it:
// the steps of a run, answers, streams, webhooks, logs, the command line.
//
// It must not know where a secret came from or what is being written.
package redact
