package cli

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

const defaultServer = "http://127.0.0.1:7411"

// target is which host a command talks to.
type target struct {
	server  string
	profile string
}

// bind adds the flags that choose a host to a command and those below it.
func (t *target) bind(cmd *cobra.Command) {
	fs := cmd.PersistentFlags()
	fs.StringVar(&t.server, "server", "", "address of the host (default: FERMATA_SERVER, else "+defaultServer+")")
	fs.StringVar(&t.profile, "profile", "", "profile with address and API key (default: FERMATA_PROFILE, else \"default\")")
}

// place is a host's address and the key for it.
type place struct {
	server, key string
	from        string // where the address came from, for a person
	keyFrom     string // where the key came from; empty for no key
}

// resolve finds out which host is meant. A flag beats the environment, which
// beats a profile. The key of a profile is for the profile's own host: it never
// goes to an address that came from elsewhere.
func (a *app) resolve(t target) (place, error) {
	p, name, err := a.profile(t.profile)
	if err != nil {
		return place{}, usageError{err}
	}
	out := place{server: defaultServer, from: "default"}
	env := a.env.Getenv("FERMATA_SERVER")
	switch {
	case t.server != "":
		out.server, out.from = t.server, "flag --server"
	case t.profile != "" && p.Server != "":
		out.server, out.from = p.Server, "profile "+name
	case env != "":
		out.server, out.from = env, "environment FERMATA_SERVER"
	case p.Server != "":
		out.server, out.from = p.Server, "profile "+name
	}
	key := a.env.Getenv("FERMATA_API_KEY")
	own := p.Key != "" && sameHost(out.server, p.Server)
	switch {
	case own && (t.profile != "" || key == ""):
		out.key, out.keyFrom = p.Key, "profile "+name
	case key != "":
		out.key, out.keyFrom = key, "environment FERMATA_API_KEY"
	}
	return out, nil
}

func sameHost(a, b string) bool {
	if b == "" {
		b = defaultServer
	}
	ua, err := url.Parse(a)
	if err != nil {
		return false
	}
	ub, err := url.Parse(b)
	return err == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host)
}

// connect makes a client of the host that is meant.
func (a *app) connect(t target) (*client.Client, error) {
	p, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	c, err := a.dial(p)
	if err != nil {
		return nil, err
	}
	if p.key != "" && exposed(p.server) {
		a.note("warning: the API key goes to %s without encryption; use https", plain(p.server))
	}
	return c, nil
}

func (a *app) dial(p place, opts ...client.Option) (*client.Client, error) {
	opts = append([]client.Option{
		client.WithUserAgent("fermata-cli/" + a.env.Version),
		client.WithRetry(client.Retry{Attempts: 3, Base: 150 * time.Millisecond, Max: 10 * time.Second}),
	}, opts...)
	c, err := client.New(p.server, p.key, opts...)
	if err != nil {
		return nil, usage("server: %q: %w (from the %s)", p.server, err, p.from)
	}
	return c, nil
}

// exposed reports whether what is sent to an address can be read on its way.
func exposed(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}
