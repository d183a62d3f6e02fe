package conformance

import (
	"context"
	"crypto/tls"
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
	t := console{ctx, getenv, stdout, stderr}
	if len(args) > 0 {
		if verb, ok := verbs[args[0]]; ok {
			return verb(t, args[1:])
		}
	}
	return t.run(args)
}

// console is where a verb runs.
type console struct {
	ctx            context.Context
	getenv         func(string) string
	stdout, stderr io.Writer
}

// usage reports what is wrong with the arguments.
func (t console) usage(format string, args ...any) int {
	fmt.Fprintf(t.stderr, "conformance: "+format+"\n", args...)
	return ExitUsage
}

// run is the verb without a name: look at a host.
func (t console) run(args []string) int {
	var cfg Config
	var cert certFlags
	f := t.flags("")
	f.StringVar(&cfg.BaseURL, "base-url", "http://127.0.0.1:7411", "origin of the host")
	f.StringVar(&cfg.APIKey, "api-key", "", "API key (default $FERMATA_API_KEY)")
	const second = "API key of a second tenant (default $FERMATA_SECOND_API_KEY)"
	f.StringVar(&cfg.OtherAPIKey, "second-api-key", "", second)
	f.StringVar(&cfg.OtherAPIKey, "other-api-key", "", "same as --second-api-key")
	f.StringVar(&cfg.ExpiredRun, "expired-run", "", "id of a run that the host has let go of")
	f.IntVar(&cfg.TargetMajor, "target-major", 0, "protocol major (default: the one the host prefers)")
	f.StringVar(&cfg.Filter, "filter", "", "regular expression of the checks or floor scenarios to run")
	f.DurationVar(&cfg.Timeout, "timeout", 30*time.Second, "longest time for one check")
	f.IntVar(&cfg.Parallel, "parallel", 4, "checks to run at the same time")
	f.BoolVar(&cfg.Quick, "quick", false, "leave out checks that wait for a long silence")
	f.StringVar(&cfg.ReceiverURL, "receiver-url", "", "public https address in front of --receiver-listen")
	f.StringVar(&cfg.ReceiverListen, "receiver-listen", "", "address the suite's webhook receiver listens on")
	f.StringVar(&cfg.ReceiverCA, "receiver-ca", "", "file of the authority under which receivers speak https (see conformance authority)")
	cert.bind(f)
	leaf := f.String("receiver-cert", "", "certificate (PEM) the receiver speaks TLS with; the host must trust it")
	leafKey := f.String("receiver-key", "", "key (PEM) of --receiver-cert")
	asJSON := f.Bool("json", false, "write the report as JSON")
	if _, code, ok := t.parse(f, args, 0); !ok {
		return code
	}
	if *leaf != "" || *leafKey != "" {
		pair, err := tls.LoadX509KeyPair(*leaf, *leafKey)
		if err != nil {
			return t.usage("the receiver's certificate: %v", err)
		}
		cfg.ReceiverTLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	cfg.APIKey = or(cfg.APIKey, t.getenv("FERMATA_API_KEY"))
	cfg.OtherAPIKey = or(cfg.OtherAPIKey, or(t.getenv("FERMATA_SECOND_API_KEY"), t.getenv("FERMATA_OTHER_API_KEY")))
	if cert.file != "" && cfg.TargetMajor == 0 {
		cfg.TargetMajor = 2 // which is what bundles are about, whatever a host prefers
	}
	if err := cert.read(cfg); err != nil {
		return t.usage("%v", err)
	}
	report, err := Run(t.ctx, cfg)
	if err != nil {
		fmt.Fprintln(t.stderr, err)
		return ExitUsage
	}
	write := report.WriteText
	if *asJSON {
		write = report.WriteJSON
	}
	if err := write(t.stdout); err != nil {
		fmt.Fprintln(t.stderr, err)
		return ExitUsage
	}
	if err := cert.write(&report); err != nil {
		return t.usage("no bundle was written: %v", err)
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
