package conformance

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Version is the version of this suite.
const Version = "0.1.0"

// Config says which host to look at, and how.
type Config struct {
	// BaseURL is the origin the host serves the protocol at.
	BaseURL string

	// APIKey is sent as a bearer credential. It needs the scopes to create, read
	// and cancel runs and to answer interrupts.
	APIKey string

	// OtherAPIKey belongs to a second tenant. Checks that need an existing
	// foreign run are blocked without it.
	OtherAPIKey string

	// ExpiredRun is the id of a run of the caller's tenant that the host has let go
	// of. Nothing on the wire makes one, so checks of it are inapplicable without.
	ExpiredRun string

	// TargetMajor is the protocol major to look at; 0 takes the major of the
	// host's preferredVersion. 1 and 2 are covered.
	TargetMajor int

	// Filter selects checks whose id, or whose floor scenario, matches this
	// regular expression. Empty selects all.
	Filter string

	// HTTPClient makes the requests. Redirects are never followed.
	HTTPClient *http.Client

	// Timeout bounds one check; 0 means 30 seconds.
	Timeout time.Duration

	// Patience is what a check that has to sit through a silence, or a host's
	// backoff, gets on top of Timeout; 0 means 35 seconds.
	Patience time.Duration

	// Parallel is the number of checks that run at the same time; 0 means 4.
	// The order of the results does not depend on it.
	Parallel int

	// Quick leaves out checks that have to sit through a long silence. They are
	// then reported as blocked.
	Quick bool

	// ReceiverURL is a public https address in front of ReceiverListen, for
	// hosts that (rightly) refuse to call loopback. Without it the suite offers
	// its loopback address, and what the host refuses is blocked.
	ReceiverURL    string
	ReceiverListen string

	// ReceiverCA is a file with a certificate authority and its key (NewAuthority).
	// With it the suite's receivers speak https, to hosts that trust it.
	ReceiverCA string
	authority  *authority

	// ReceiverTLS, if set, has the suite's receivers speak TLS with this
	// configuration: a certificate for its address whose authority the host trusts.
	ReceiverTLS *tls.Config

	// Log is told about each result as it comes; nil is silent.
	Log func(Result)
}

func (c Config) withDefaults() (Config, *regexp.Regexp, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return c, nil, fmt.Errorf("conformance: the base URL %q is not an http or https address", c.BaseURL)
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.TargetMajor < 0 || c.TargetMajor > 2 {
		return c, nil, fmt.Errorf("conformance: major %d is not covered, 1 and 2 are", c.TargetMajor)
	}
	if c.ReceiverURL != "" && c.ReceiverListen == "" {
		return c, nil, errors.New("conformance: ReceiverURL needs ReceiverListen, the address it forwards to")
	}
	if c.ReceiverCA != "" {
		if c.authority, err = readAuthority(c.ReceiverCA); err != nil {
			return c, nil, fmt.Errorf("conformance: receiver CA: %w", err)
		}
	}
	filter, err := regexp.Compile(c.Filter)
	if err != nil {
		return c, nil, fmt.Errorf("conformance: filter: %w", err)
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Patience <= 0 {
		c.Patience = 35 * time.Second
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	client := &http.Client{}
	if c.HTTPClient != nil {
		*client = *c.HTTPClient
	}
	if client.Transport == nil {
		// Compression is asked for by the check that is about it, and by no other.
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true
		t.MaxIdleConnsPerHost = 64
		client.Transport = t
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.HTTPClient = client
	return c, filter, nil
}
