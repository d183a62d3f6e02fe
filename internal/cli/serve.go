package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/internal/relax"
	"github.com/spf13/cobra"
)

const serveAbout = `Runs a host until it is told to stop.

The first start makes an API key and shows it once, unless FERMATA_BOOTSTRAP_KEY holds one. The host
listens on this machine only; an address that others can reach must be given by --listen.

Ctrl-C or SIGTERM stops it in order within --shutdown-grace, after --shutdown-notice, and a second one at once. Nothing is
lost either way: what was under way goes on at the next start.

Every setting can also be given by an environment variable, such as FERMATA_LISTEN for --listen, or
in fermata.yaml in the data folder. ` + "`fermata config`" + ` shows what is in force, and why.`

func (a *app) serveCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{Use: "serve", Short: "Start a host", Long: serveAbout, Args: noArgs}
	config.Bind(cmd.Flags(), config.ServeOnly)
	cmd.Flags().BoolVar(&strict, "strict", false, "do not start if a file in --workflows is not a valid workflow")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, src, err := a.settings(cmd)
		if err != nil {
			return usageError{err}
		}
		if a.env.OpenHost == nil {
			return errors.New("this program carries no host")
		}
		if !cfg.Loopback() && src["listen"].Kind != config.FromFlag {
			return usage("listen: %q can be reached by other machines, so it must be given by --listen (from the %s)", cfg.Listen, src["listen"])
		}
		if cfg.Data == "" && cfg.Store == "" {
			return usage("data: the environment does not say where your files are; give a folder by --data")
		}
		return a.serve(cmd.Context(), cfg, strict)
	}
	return cmd
}

// serve opens everything in an order that loses nothing: the address first, so
// that a key made for a new data folder is always shown.
func (a *app) serve(ctx context.Context, cfg config.Config, strict bool) error {
	log, err := a.logger(cfg, a.env.Stderr)
	if err != nil {
		return usageError{err}
	}
	if err := a.checkEnviron(log); err != nil {
		return err
	}
	warnUnusual(log, cfg)
	if cfg.Store == "" {
		if err := prepareData(cfg.Data, log); err != nil {
			return err
		}
	}
	secure, err := newServed(cfg, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure.config())
	}
	defer listener.Close()
	h, err := a.env.OpenHost(ctx, cfg, log)
	if err != nil {
		return err
	}
	a.banner(address(listener, secure), cfg, h.FirstKey())
	err = h.Start(ctx)
	if err == nil && cfg.Workflows != "" {
		err = a.loadFolder(ctx, h, cfg.Workflows, strict)
	}
	if err != nil {
		return errors.Join(err, stopHost(h, cfg.ShutdownGrace))
	}
	return a.serveUntil(ctx, h, listener, cfg, log)
}

func prepareData(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data folder cannot be made: %w", err)
	}
	if mode, open := openToOthers(dir); open {
		log.Warn("others on this machine can reach the data folder", "data", dir, "mode", mode, "fix", "chmod 700 "+dir)
	}
	return nil
}

// address is where the API is, from here.
func address(l net.Listener, secure *served) string {
	if secure != nil {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

func (a *app) banner(url string, cfg config.Config, key string) {
	a.say("fermata %s is listening on %s", a.env.Version, url)
	a.say("  API        %s/", url)
	a.say("  discovery  %s/.well-known/openwop", url)
	if cfg.Store != "" {
		a.say("  store      %s", config.HidePassword(cfg.Store))
	} else {
		a.say("  data       %s", cfg.Data)
	}
	a.say("  mode       %s", cfg.Mode)
	for _, r := range config.Relaxations(cfg) {
		a.say("  relaxed    %s (--%s)", r.Effect, r.Setting)
	}
	if key != "" {
		a.say("  API key    %s", key)
		a.say("             It is shown this once: keep it. For the other commands, set it with")
		a.say("             export FERMATA_API_KEY=%s", key)
	}
}

// serveUntil serves until ctx ends, then stops in order.
func (a *app) serveUntil(ctx context.Context, h Host, l net.Listener, cfg config.Config, log *slog.Logger) error {
	grace := cfg.ShutdownGrace
	srv := newServer(h.Handler(), log)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return errors.Join(err, stopHost(h, grace))
	case <-ctx.Done():
	}
	if leaver, ok := h.(Leaver); ok && cfg.ShutdownNotice > 0 {
		log.Info("about to stop", "notice", cfg.ShutdownNotice.String())
		leaver.Leave()
		select {
		case err := <-failed:
			return errors.Join(err, stopHost(h, grace))
		case <-time.After(cfg.ShutdownNotice):
		}
	}
	log.Info("stopping", "grace", grace.String())
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		// No new connections from here on. Streams end by the host's stop.
		if err := srv.Shutdown(end); err != nil {
			srv.Close() //nolint:errcheck // the grace is over
		}
	}()
	err := h.Stop(end)
	<-closed
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the host did not stop cleanly: %w", err)
	}
	log.Info("stopped")
	return nil
}

func stopHost(h Host, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return h.Stop(ctx)
}

// checkEnviron makes sure that no variable was meant as a setting and is none.
func (a *app) checkEnviron(log *slog.Logger) error {
	if a.env.Environ == nil {
		return nil
	}
	unknown, err := config.CheckEnviron(a.env.Environ())
	if err != nil {
		return usageError{err}
	}
	if len(unknown) > 0 {
		log.Warn("variables of the environment begin like settings and are none", "names", unknown)
	}
	return nil
}

// warnUnusual logs what an operator has opened.
func warnUnusual(log *slog.Logger, cfg config.Config) {
	relaxed := config.Relaxations(cfg)
	for _, n := range config.Notes(cfg) {
		if r, ok := relax.Of(relaxed, n.Setting); ok {
			log.Warn("a protection is relaxed", "relaxation", r.Name, "setting", r.Setting, "note", r.Effect)
			continue
		}
		log.Warn("a setting reaches further than its default", "setting", n.Setting, "note", n.Text)
	}
}
