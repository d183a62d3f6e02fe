package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// answerFlags are how an answer is given on the command line.
type answerFlags struct {
	action, comment, value, file string
}

const resolveAbout = `Answers what a node of a run waits for.

  --action accept                         accept, reject and whatever else the gate offers
  --action refine --comment "Shorter."    ask for another version
  --action edit-accept --file new.json    accept an edited artifact
  --value '{"paid": true}'                the whole answer, for events and other kinds

Without any of them, and in a terminal, you are asked.`

func (a *app) approvalsResolve(t *target) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use: "resolve RUN NODE", Short: "Answer what a node waits for", Long: resolveAbout, Args: exactly("a run id", "a node id"),
	}
	cmd.Flags().StringVar(&f.action, "action", "", "what to decide: accept, reject, refine, edit-accept or ask")
	cmd.Flags().StringVar(&f.comment, "comment", "", "words that go with the decision")
	cmd.Flags().StringVar(&f.value, "value", "", "the answer as JSON; with edit-accept, the edited artifact")
	cmd.Flags().StringVar(&f.file, "file", "", "file with that JSON, - for the standard input")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run, node := runID(args[0]), args[1]
		answer, given, err := a.answer(f)
		if err != nil {
			return err
		}
		if !given && !a.isTerminal(a.env.Stdin) {
			return usage("give the answer with --action, --value or --file")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if !given {
			if answer, err = a.askFor(cmd.Context(), c, run, node); err != nil {
				return err
			}
		}
		st, err := c.ResolveInterrupt(cmd.Context(), run, node, answer)
		if err != nil {
			return err
		}
		return a.printStatus(st, *asJSON)
	}
	return cmd
}

// answer makes an answer of the flags. It reports whether there is one.
func (a *app) answer(f answerFlags) (json.RawMessage, bool, error) {
	if f.value != "" && f.file != "" {
		return nil, false, usage("--value and --file exclude each other")
	}
	var v json.RawMessage
	switch {
	case f.value != "":
		v = json.RawMessage(f.value)
	case f.file != "":
		b, err := a.input(f.file)
		if err != nil {
			return nil, false, err
		}
		v = b
	}
	if v != nil && !json.Valid(v) {
		return nil, false, usage("the answer is not valid JSON")
	}
	if f.action == "" {
		if f.comment != "" {
			return nil, false, usage("--comment goes with --action")
		}
		return v, v != nil, nil
	}
	if !slices.Contains([]string{"accept", "reject", "refine", "edit-accept", "ask"}, f.action) {
		return nil, false, usage("--action %q is not accept, reject, refine, edit-accept or ask", f.action)
	}
	out, err := decide(f.action, f.comment, v)
	return out, true, err
}

// askFor looks up what the node waits for and asks the person at the terminal.
func (a *app) askFor(ctx context.Context, c *client.Client, run, node string) (json.RawMessage, error) {
	for o := (client.PageOptions{}); ; {
		page, err := c.ListInterrupts(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Interrupts {
			if i.RunID == run && i.NodeID == node {
				p := &prompter{a.env.Stderr, a.lines}
				return p.ask(ctx, i.Request)
			}
		}
		if o.Cursor = page.NextCursor; o.Cursor == "" {
			return nil, &client.Error{Code: "not_found", Message: "the node does not wait for an answer"}
		}
	}
}
