package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// credentialsCommand holds the commands on credentials and on the keys that seal
// them.
func (a *app) credentialsCommand() *cobra.Command {
	var t target
	g := group("credentials", "Keep what workflows present elsewhere", a.credentialsAdd(&t), a.credentialsList(&t),
		a.credentialsRotate(&t), a.credentialsDelete(&t), a.credentialsSeal(&t))
	t.bind(g)
	return g
}

const credentialsAddAbout = `Keeps a credential under a ref that workflows name. The secret comes from the standard
input, from a file, or is asked for in a terminal; never from the command line, which other
users of the machine can read. Nothing shows it again.

  printf %s "$STRIPE_KEY" | fermata credentials add --name stripe --audience api.stripe.com

A node then presents it to api.stripe.com, and to no other host:

  "config": {"url": "https://api.stripe.com/v1/charges", "credential": {"ref": "cred_…"}}`

func (a *app) credentialsAdd(t *target) *cobra.Command {
	var n client.NewCredential
	var file, source string
	var expires string
	cmd := &cobra.Command{Use: "add", Short: "Keep a credential", Long: credentialsAddAbout, Args: noArgs}
	fs := cmd.Flags()
	fs.StringVar(&n.Name, "name", "", "what you call it")
	fs.StringVar(&n.Scope, "scope", "", "whose runs may use it: user, workspace, tenant or run (default tenant, or the workspace that the key is bound to)")
	fs.StringVar(&n.Workspace, "workspace", "", "the workspace it is for, with --scope workspace")
	fs.StringVar(&n.RunID, "run", "", "the run it is for, with --scope run")
	fs.StringVar(&n.Username, "username", "", "user name that goes with the secret, which is a password then")
	fs.StringSliceVar(&n.Audiences, "audience", nil, "host it may be sent to, or *.domain; may be given again")
	fs.StringVar(&expires, "expires", "", "when it stops being sent, such as 2030-01-31T12:00:00Z")
	fs.StringVar(&n.OutOfAudience, "elsewhere", "deny", "what becomes of a call to another host: deny, or downgrade to go without it")
	fs.StringVar(&file, "secret-file", "", "file that holds the secret; the standard input if not set")
	fs.StringVar(&source, "source", "", "store and name of a secret that stays outside, such as file:stripe or env:STRIPE")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(n.Audiences) == 0 {
			return usage("--audience is required: name the hosts that the credential may be sent to")
		}
		if n.Username != "" {
			n.Kind = "basic"
		}
		if expires != "" {
			at, err := time.Parse(time.RFC3339, expires)
			if err != nil {
				return usage("--expires: %q is no time such as 2030-01-31T12:00:00Z", expires)
			}
			n.ExpiresAt = &at
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if store, name, ok := strings.Cut(source, ":"); ok {
			n.Source = &client.CredentialSource{Store: store, Name: name}
		} else if source != "" {
			return usage("--source: %q is no store and name such as env:STRIPE", source)
		} else if n.Secret, err = a.secretFrom(file); err != nil {
			return err
		}
		out, err := c.CreateCredential(cmd.Context(), n)
		if err != nil {
			return a.hiding(err, n.Secret)
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("ref        %s", plain(out.Ref))
		a.say("scope      %s", plain(out.Scope))
		a.say("audiences  %s", plain(strings.Join(out.Provenance.Audiences, ", ")))
		return nil
	}
	return cmd
}

// maxSecret is what the host takes at most, and a line end.
const maxSecret = 64<<10 + 2

// secretFrom reads a secret: from a file, from the standard input, or by asking who
// sits there without showing what is typed.
func (a *app) secretFrom(file string) (string, error) {
	var b []byte
	var err error
	f, _ := a.env.Stdin.(*os.File)
	switch {
	case file != "":
		b, err = os.ReadFile(file)
	case f != nil && a.isTerminal(f):
		fmt.Fprint(a.env.Stderr, "Secret: ")
		b, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.env.Stderr)
	default:
		b, err = io.ReadAll(io.LimitReader(a.env.Stdin, maxSecret))
	}
	if err != nil {
		return "", fmt.Errorf("the secret cannot be read: %w", err)
	}
	s := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if s == "" {
		return "", usage("there is no secret: give it on the standard input or with --secret-file")
	}
	a.secrets.Know("", "secret", s)
	return s, nil
}

// hiding is an error that cannot hold the secret, whatever a host has answered.
func (a *app) hiding(err error, secret string) error {
	if secret != "" && strings.Contains(err.Error(), secret) {
		return errors.New(a.secrets.Known("", err.Error()))
	}
	return err
}

func (a *app) credentialsList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the credentials, without what they hold", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.Credential
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListCredentials(cmd.Context(), o)
			if err != nil {
				return err
			}
			all, raws = append(all, page.Credentials...), append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("credentials", raws, "")
		}
		if len(all) == 0 {
			a.say("There are no credentials. Add one with `fermata credentials add`.")
			return nil
		}
		tab := newTable("REF", "NAME", "SCOPE", "KIND", "VERSION", "EXPIRES", "AUDIENCES")
		for _, x := range all {
			tab.add(x.Ref, x.Name, x.Scope, x.Kind, fmt.Sprint(x.Version), stamp(x.Provenance.ExpiresAt), strings.Join(x.Provenance.Audiences, " "))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func (a *app) credentialsRotate(t *target) *cobra.Command {
	var file string
	var overlap time.Duration
	r := client.CredentialRotation{Overlap: &overlap}
	cmd := &cobra.Command{
		Use: "rotate REF", Short: "Give a credential a new secret", Args: exactly("a ref"),
		Long: "Gives a credential a new secret, from the standard input or a file. Nodes that name the ref present the new\none at once; REF@VERSION still names the old one until the overlap is over.",
	}
	cmd.Flags().StringVar(&r.Username, "username", "", "user name of a credential with a password")
	cmd.Flags().StringVar(&file, "secret-file", "", "file that holds the secret; the standard input if not set")
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "for how long the old one still resolves")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if r.Secret, err = a.secretFrom(file); err != nil {
			return err
		}
		out, err := c.RotateCredential(cmd.Context(), args[0], r)
		if err != nil {
			return a.hiding(err, r.Secret)
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("%s is at version %d.", plain(out.Ref), out.Version)
		if overlap > 0 {
			a.say("The one before resolves as %s@%d until %s.", plain(out.Ref), out.Version-1, stamp(out.PreviousUntil))
		}
		return nil
	}
	return cmd
}

func (a *app) credentialsDelete(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete REF", Short: "Forget a credential", Args: exactly("a ref"),
		Long: "Forgets a credential. Nodes that name it fail with credential_not_found from then on.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if err := c.DeleteCredential(cmd.Context(), args[0]); err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"ref": args[0], "deleted": true})
		}
		a.say("%s is deleted.", plain(args[0]))
		return nil
	}
	return cmd
}

const credentialsSealAbout = `Lets the host take up the first key in its master key file, and with --data-keys make new
data keys and seal everything anew. The host goes on working meanwhile. To replace the master key:

  1. put a new key into the file, on a line before the old one
  2. fermata credentials rotate-keys
  3. take the old line out of the file

A new key is what "fermata credentials rotate-keys --new-key" prints.`

func (a *app) credentialsSeal(t *target) *cobra.Command {
	var data, fresh bool
	cmd := &cobra.Command{Use: "rotate-keys", Short: "Replace the keys that seal what is secret", Long: credentialsSealAbout, Args: noArgs}
	cmd.Flags().BoolVar(&data, "data-keys", false, "also make new data keys and seal everything anew")
	cmd.Flags().BoolVar(&fresh, "new-key", false, "print a new master key, and do nothing else")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if fresh {
			if a.env.NewMasterKey == nil {
				return errors.New("this program carries no host")
			}
			a.say("%s", a.env.NewMasterKey())
			return nil
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		out, err := c.RotateVault(cmd.Context(), data)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("The master key in use is %s.", plain(out.Master))
		if data {
			a.say("%s made, %s sealed anew.", plural(out.DataKeys, "data key"), plural(out.Values, "value"))
		}
		return nil
	}
	return cmd
}
