package conformance

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// manual is what --help says of a verb.
type manual struct{ use, about string }

var manuals = map[string]manual{
	"": {"[flags]", `Looks at a host of the protocol from outside and says for every requirement whether
the host meets it. Exit status: 0 met, 1 a MUST is broken, 2 the suite could not
begin or the host does not serve that version, 3 nothing failed and something was blocked.

Other verbs, each with a --help of its own:
  verify FILE  hold a certification bundle against the host it is about
  keygen       make a key pair that signs bundles
  authority    make an authority under which the suite's receivers speak https`},
	"verify": {"verify FILE [flags]", `Says what a certification bundle is worth. Exit status: 0 the host published the key
and all that is claimed is certified, 1 refused, 2 a bad argument, 3 the host's
discovery was not read, 4 it does not list the key, 5 the attestation does not
verify, 6 sound evidence that does not certify what is claimed.`},
	"keygen": {"keygen [flags]", `Makes a key pair that signs certification bundles: NAME.pem and NAME.pub.pem. It
never writes over a file.`},
	"authority": {"authority [flags]", `Makes an authority for the https receivers of the suite: NAME.key.pem is for
the suite, NAME.pem for the host. It never writes over a file.`},
}

// flags is an empty set of flags of a verb. What is wrong with them is told by parse.
func (t console) flags(verb string) *flag.FlagSet {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse takes flags before and behind the arguments, of which there may be so many.
// Without ok the verb is over, with the exit status code.
func (t console) parse(f *flag.FlagSet, args []string, most int) (operands []string, code int, ok bool) {
	for {
		switch err := f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			t.help(f)
			return nil, ExitOK, false
		case err != nil:
			return nil, t.usage("%v; see conformance %s", err, strings.TrimSpace(f.Name()+" --help")), false
		case f.NArg() == 0:
			return operands, ExitOK, true
		case len(operands) == most:
			return nil, t.usage("unexpected argument %q; see conformance %s", f.Arg(0), strings.TrimSpace(f.Name()+" --help")), false
		}
		operands, args = append(operands, f.Arg(0)), f.Args()[1:]
	}
}

func (t console) help(f *flag.FlagSet) {
	m := manuals[f.Name()]
	fmt.Fprintf(t.stdout, "%s\n\nUsage:\n  fermata conformance %s\n\nFlags:\n", m.about, m.use)
	w := tabwriter.NewWriter(t.stdout, 0, 0, 3, ' ', 0)
	defer w.Flush()
	f.VisitAll(func(x *flag.Flag) {
		kind, usage := flag.UnquoteUsage(x)
		switch x.DefValue {
		case "", "0", "false":
		default:
			usage += " (default " + x.DefValue + ")"
		}
		fmt.Fprintf(w, "  --%s\t%s\n", strings.TrimSpace(x.Name+" "+kind), usage)
	})
}
