package node

import (
	"context"
	"encoding/json"
)

// Type is one kind of node: what a workflow names in a node's typeId.
type Type struct {
	// ID is the typeId, two or more dotted segments such as "acme.mail.send".
	ID string

	// Description is one sentence for people who pick a node.
	Description string

	// Pure says that Run is quick, does no I/O and always gives the same result
	// for the same Input. A pure node runs within the run's own turn and shares
	// a transaction with its neighbours. Leave it false for anything that
	// blocks or reaches outside: such a call is made only after the fact that
	// it begins is durable. A pure call that has not returned after 10 seconds
	// (or the node's timeoutMs, if that is less) is given up, and its node fails.
	Pure bool

	// ConfigSchema, if set, is a JSON Schema (2020-12) that a node's config must
	// satisfy when the workflow is registered.
	ConfigSchema json.RawMessage

	// Check, if set, looks at a node's config when the workflow is registered.
	// Its error refuses the workflow.
	Check func(c CheckContext) error

	// Ports, if set, says what a node with this config puts out, so that a
	// workflow that reads anything else, or waits for a branch that is never
	// taken, is refused when it is registered.
	Ports func(config json.RawMessage) Ports

	// Requires names host capabilities without which a node of this type is
	// never started; the run fails with capability_not_provided instead.
	Requires []string

	// Early, if set, reports whether an answer may arrive before a node with
	// this config begins to wait for it (external events do). Such an answer is
	// kept, and given to the node when it waits.
	Early func(config json.RawMessage) bool

	// Expect, if set, is what a node with this config will ask for, as far as its
	// config alone says it; false if it does not. A node with input ports is not
	// asked. An early answer that does not fit is refused when it comes, instead
	// of being kept for a wait that it cannot end.
	Expect func(config json.RawMessage) (Interrupt, bool)

	// Sensitive names output ports whose values are masked in everything that
	// leaves the host, unless the workflow says otherwise for a node.
	Sensitive []string

	// Credentials names the members of the config that hold a CredentialRef. Only
	// what one of them names can be had from Services.Credential: neither an input
	// port nor anything a run brings along chooses a credential.
	Credentials []string

	// Seams are the ways by which the node's effects leave the host. A type that
	// calls out declares each of them: what is not declared is not let out.
	Seams []Seam

	// Run does the node's work. It is called once per attempt, and again each
	// time something the node waited for has come (Input.Wake says what). An
	// error fails the attempt; use Fail or a *Error to choose code, retry and
	// details. A panic is an error that is not retried.
	Run func(ctx context.Context, in *Input) (Result, error)
}

// Ports is what a node puts out and which way it may go.
type Ports struct {
	// Outputs are the names Done may use; nil if they are not known beforehand.
	Outputs []string
	// Branches are the ports Take may name; nil for a node that does not choose.
	Branches []string
}

// CheckContext is what Type.Check is given.
type CheckContext struct {
	// Config is the node's config object.
	Config json.RawMessage

	// Expression reports whether source is a valid expression of the host's
	// expression language over the standard names and the extra ones given.
	Expression func(source string, extra ...string) error
}
