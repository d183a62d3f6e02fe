package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/config"
)

// local is a host inside this process, for one run.
type local struct {
	host   Host
	client *client.Client
	logs   *relay
	grace  time.Duration
	data   string
	keep   bool         // the data stays
	server *http.Server // with --listen; else nil
	url    string       // where it is served; empty for nowhere
}

func (a *app) openLocal(ctx context.Context, cfg config.Config, src config.Sources) (_ *local, err error) {
	cfg.Store = "" // what is run here is kept here
	l := &local{logs: newRelay(a.env.Stderr), grace: cfg.ShutdownGrace, data: cfg.Data, keep: cfg.Data != ""}
	if l.keep {
		err = os.MkdirAll(cfg.Data, 0o700)
	} else {
		l.data, err = os.MkdirTemp("", "fermata-run-")
		cfg.Data = l.data
	}
	if err != nil {
		return nil, fmt.Errorf("the data folder cannot be made: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	log, err := a.logger(cfg, l.logs)
	if err != nil {
		return nil, err
	}
	h, err := a.env.OpenHost(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	l.host = h // not before: an interface that holds nothing is not nil
	if err = h.Start(ctx); err != nil {
		return nil, err
	}
	l.client = h.Client()
	// Only where it was asked for here: FERMATA_LISTEN is about `fermata serve`.
	if src["listen"].Kind == config.FromFlag {
		err = l.listen(cfg, log)
	}
	return l, err
}

// listen serves the API while the run goes on.
func (l *local) listen(cfg config.Config, log *slog.Logger) error {
	if !cfg.Loopback() {
		log.Warn("other machines can reach the API while the run goes on", "address", cfg.Listen)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	l.url = "http://" + listener.Addr().String()
	l.server = newServer(l.host.Handler(), log)
	go l.server.Serve(listener) //nolint:errcheck // it ends with close
	return nil
}

// close stops the host and removes what is not to be kept.
func (l *local) close() error {
	var err error
	if l.host != nil {
		ctx, stop := context.WithTimeout(context.Background(), l.grace)
		defer stop()
		err = l.host.Stop(ctx)
	}
	if l.server != nil {
		l.server.Close() //nolint:errcheck // there is nobody left to answer
	}
	if !l.keep {
		err = errors.Join(err, os.RemoveAll(l.data))
	}
	return err
}

// runIn registers the workflow and its neighbours, starts a run and watches it.
func (a *app) runIn(ctx context.Context, l *local, w *work, in json.RawMessage, o runOptions) (outcome, error) {
	if _, err := l.client.PutWorkflow(ctx, w.text); err != nil {
		if errors.Is(err, client.ErrNoWorkflowID) {
			err = unreadable(w.text)
		}
		return outcome{}, a.refused(w.file, err)
	}
	names := map[string]map[string]string{w.head.ID: w.head.names()}
	notes := a.registerOthers(ctx, l, w, names)
	made, err := l.client.CreateRun(ctx, client.CreateRunRequest{WorkflowID: w.head.ID, Inputs: in, Tags: o.tags})
	if err != nil {
		return outcome{}, err
	}
	if o.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer stop()
	}
	b := newBoard(made.RunID, names[w.head.ID])
	s := &session{
		c: l.client, root: made.RunID, board: b, view: a.newView(b, o.asJSON), keep: l.keep,
		namesOf: func(id string) map[string]string { return names[id] }, logs: l.logs.lines,
	}
	s.desk = &desk{
		c: l.client, view: s.view, root: made.RunID, preset: o.answers, remote: l.url != "",
		how: func(q *openQuestion) []string { return l.howToAnswer(q) }, answered: make(chan reply, 1),
	}
	if a.isTerminal(a.env.Stdin) && a.isTerminal(a.env.Stderr) {
		s.desk.person = &prompter{a.env.Stderr, a.lines}
	}
	detach := l.logs.attach()
	defer detach()
	out, err := s.watch(ctx)
	if err == nil {
		err = a.awaitUndone(ctx, l, made.RunID)
	}
	if l.keep && err != nil {
		a.note("Run %s stays in %s; `fermata serve --data %s` goes on with it.", made.RunID, l.data, l.data)
	}
	if out.event.Type == "run.failed" {
		for _, n := range notes {
			a.note("%s", n)
		}
	}
	return out, err
}

// registerOthers registers the neighbours that are workflows. What is not fit is
// no fault of this run, unless the run turns out to need it: then the notes say
// why it was not there.
func (a *app) registerOthers(ctx context.Context, l *local, w *work, names map[string]map[string]string) (notes []string) {
	for _, f := range w.others {
		b, err := readDefinition(f)
		h := headOf(b)
		if err != nil || h.ID == "" || h.Nodes == nil || h.ID == w.head.ID {
			continue
		}
		if _, err := l.client.PutWorkflow(ctx, b); err != nil {
			for _, line := range faults(f, err) {
				notes = append(notes, "  not registered: "+line)
			}
			continue
		}
		names[h.ID] = h.names()
	}
	return notes
}

// howToAnswer says how a question can be answered when nobody sits here.
func (l *local) howToAnswer(q *openQuestion) []string {
	node := plain(q.node)
	lines := []string{node + " waits: " + plain(titleOf(q.request))}
	example := "'{…}'"
	if as := actionsOf(q.request); len(as) > 0 {
		example = as[0]
	}
	if l.url == "" {
		return append(lines, "  Answer it in a terminal, or give the answer with --answer "+node+"="+example+", or serve the API with --listen.")
	}
	flag := "--value " + example
	if len(actionsOf(q.request)) > 0 {
		flag = "--action " + example
	}
	cmd := []string{"fermata approvals resolve", q.run, node, flag, "--server", l.url}
	if k := l.host.FirstKey(); k != "" {
		cmd = append([]string{"FERMATA_API_KEY=" + k}, cmd...)
	}
	return append(lines, "  Answer it with: "+strings.Join(cmd, " "))
}
