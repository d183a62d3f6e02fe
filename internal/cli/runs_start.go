package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) runsStart(t *target) *cobra.Command {
	var in inputFlags
	var tags []string
	var watch bool
	cmd := &cobra.Command{Use: "start WORKFLOW", Short: "Start a run", Args: exactly("a workflow id")}
	in.bind(cmd)
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a tag of the run (repeatable)")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the run to its end, and end as it does")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		var h head
		if len(in.pairs) > 0 || watch {
			if h, err = declared(ctx, c, args[0]); err != nil {
				return err
			}
		}
		inputs, err := a.inputs(in, h.Variables)
		if err != nil {
			return err
		}
		made, err := c.CreateRun(ctx, client.CreateRunRequest{WorkflowID: args[0], Inputs: inputs, Tags: tags})
		if err != nil {
			return err
		}
		switch {
		case watch:
			if !*asJSON {
				a.note("run %s", plain(made.RunID))
			}
			return a.watchRun(ctx, c, made.RunID, h, *asJSON)
		case *asJSON:
			return a.document(made.Raw)
		}
		a.say("%s  %s", plain(made.RunID), plain(string(made.Status)))
		return nil
	}
	return cmd
}

// declared reads what a workflow declares. A caller who may start a workflow but
// not read it gets along without.
func declared(ctx context.Context, c *client.Client, id string) (head, error) {
	def, err := c.GetWorkflow(ctx, id, "")
	if client.IsStatus(err, http.StatusForbidden) {
		return head{}, nil
	}
	return headOf(def), err
}

// watchRun follows a run of a host to its end. Whoever stops watching leaves it
// alone.
func (a *app) watchRun(ctx context.Context, c *client.Client, id string, h head, asJSON bool) error {
	b := newBoard(id, h.names())
	s := &session{c: c, root: id, board: b, view: a.newView(b, asJSON), keep: true}
	s.namesOf = func(workflow string) map[string]string {
		h, err := declared(ctx, c, workflow)
		if err != nil {
			return nil // ids will do
		}
		return h.names()
	}
	s.desk = &desk{
		c: c, view: s.view, root: id, remote: true, answered: make(chan reply, 1),
		how: func(q *openQuestion) []string {
			if asJSON {
				return nil
			}
			flag := "--value '{…}'"
			if as := actionsOf(q.request); len(as) > 0 {
				flag = "--action " + as[0]
			}
			return []string{
				plain(q.node) + " waits: " + plain(titleOf(q.request)),
				"  Answer it with: fermata approvals resolve " + plain(q.run) + " " + plain(q.node) + " " + flag,
			}
		},
	}
	out, err := s.watch(ctx)
	if errors.Is(err, errInterrupted) {
		a.note("Nobody watches any more; run %s goes on.", plain(id))
	}
	if err != nil {
		return err
	}
	return a.report(out, asJSON)
}
