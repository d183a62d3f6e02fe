package conformance

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"time"
)

// The exit statuses of Command.
const (
	ExitOK      = 0 // nothing failed, nothing was blocked
	ExitFailed  = 1 // a MUST is broken
	ExitUsage   = 2 // a bad argument, or no host
	ExitBlocked = 3 // nothing failed, but something could not be measured
)

// Command is the verb: it reads flags and environment, runs the suite and
// writes the report. FERMATA_API_KEY stands in for --api-key, so that the key
// need not be in a process list.
func Command(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var cfg Config
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&cfg.BaseURL, "base-url", "http://127.0.0.1:7411", "origin of the host")
	f.StringVar(&cfg.APIKey, "api-key", "", "API key (default $FERMATA_API_KEY)")
	f.StringVar(&cfg.OtherAPIKey, "other-api-key", "", "API key of a second tenant (default $FERMATA_OTHER_API_KEY)")
	f.StringVar(&cfg.ExpiredRun, "expired-run", "", "id of a run that the host has let go of")
	f.IntVar(&cfg.TargetMajor, "target-major", 0, "protocol major (default: the one the host prefers)")
	f.StringVar(&cfg.Filter, "filter", "", "regular expression of the checks or floor scenarios to run")
	f.DurationVar(&cfg.Timeout, "timeout", 30*time.Second, "longest time for one check")
	f.IntVar(&cfg.Parallel, "parallel", 4, "checks to run at the same time")
	f.BoolVar(&cfg.Quick, "quick", false, "leave out checks that wait for a long silence")
	f.StringVar(&cfg.ReceiverURL, "receiver-url", "", "public https address in front of --receiver-listen")
	f.StringVar(&cfg.ReceiverListen, "receiver-listen", "", "address the suite's webhook receiver listens on")
	cert := f.String("receiver-cert", "", "certificate (PEM) the receiver speaks TLS with; the host must trust it")
	certKey := f.String("receiver-key", "", "key (PEM) of --receiver-cert")
	asJSON := f.Bool("json", false, "write the report as JSON")
	if err := f.Parse(args); err != nil {
		return ExitUsage
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "conformance: unexpected argument %q\n", f.Arg(0))
		return ExitUsage
	}
	if *cert != "" || *certKey != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *certKey)
		if err != nil {
			fmt.Fprintf(stderr, "conformance: the receiver's certificate: %v\n", err)
			return ExitUsage
		}
		cfg.ReceiverTLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	cfg.APIKey = or(cfg.APIKey, getenv("FERMATA_API_KEY"))
	cfg.OtherAPIKey = or(cfg.OtherAPIKey, getenv("FERMATA_OTHER_API_KEY"))
	report, err := Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitUsage
	}
	write := report.WriteText
	if *asJSON {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return ExitUsage
	}
	return report.ExitStatus()
}

// ExitStatus is what a program that ran the suite should end with. A broken
// SHOULD is reported and costs nothing; an empty selection is a usage error.
func (r *Report) ExitStatus() int {
	switch {
	case len(r.Results) == 0:
		return ExitUsage
	case r.Totals.Fail > 0:
		return ExitFailed
	case r.Totals.Blocked > 0:
		return ExitBlocked
	}
	return ExitOK
}
