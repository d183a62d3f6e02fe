// Package conformance is a black-box suite for hosts of OpenWOP v2 and v1. It speaks
// HTTP to a host it knows only by its address, and says for each requirement
// of the protocol whether the host meets it:
//
//	report, err := conformance.Run(ctx, conformance.Config{BaseURL: "http://127.0.0.1:7411", APIKey: key})
//	report.WriteText(os.Stdout)
//
// A check ends in one of four ways. It passes; it fails, with the reason; it is
// inapplicable, because the host does not advertise what it is about; or it is
// blocked, because something it needs could not be had, so that the requirement
// binds as before and was not measured. Only the first counts as a pass.
//
// The suite touches nothing but runs it has created. The workflows it needs are
// the protocol's fixtures where discovery names them; on a fermata host it
// registers its own, under names no one else uses, and leaves them there.
//
// # Adding a check
//
// A check is one entry in the table of its section's file:
//
//	must("cancel.terminal", "runs.md §Cancel", "a run that has ended is not cancelled", func(p *probe) { … }).
//		floor("v2-run-cancel", "openwop.requirement.0170.run-cancel")
//
// Its function makes requests through the probe and states what must hold;
// fail, blocked and inapplicable end it. What it creates is cancelled afterwards.
// A check nobody has seen failing proves nothing: give it a row in the table of
// conformance_test.go that breaks the host in the way the check is there for.
//
// Those of version 1 are in the files v1_*.go and in a registry of their own. A probe
// speaks the major that is looked at: paths of operations are written without /v1. Broken
// hosts of it are in mutations_v1_test.go, and a check without one fails the tests.
//
// # The command
//
// Command is the whole verb: flags, environment, text or JSON, exit status.
//
// This package must not know how a host works inside: it imports the schemas of
// the wire and the standard library, nothing else.
package conformance
