package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
)

func checkReady(ctx context.Context, c *client.Client) finding {
	if err := c.Ready(ctx); err != nil {
		return bad("ready", "Look at the host's log: its store does not answer.", "%v", err)
	}
	return good("ready", "it takes on work")
}

func checkProtocol(caps *client.Capabilities) finding {
	if !slices.Contains(caps.ProtocolVersions, client.ProtocolVersion) {
		return bad("protocol", "Use a fermata of the same generation as the host.",
			"the host speaks %s, this program %s", strings.Join(caps.ProtocolVersions, ", "), client.ProtocolVersion)
	}
	return good("protocol", "OpenWOP %s", client.ProtocolVersion)
}

func checkKey(ctx context.Context, c *client.Client, p place) finding {
	_, err := c.ListRuns(ctx, client.ListRunsOptions{Limit: 1})
	const set = "Set FERMATA_API_KEY to a key of this host, or put it in a profile."
	switch {
	case err == nil:
		f := good("key", "accepted (from the %s)", p.keyFrom)
		if exposed(p.server) {
			return bad("key", "Put TLS in front of the host and use https.", "it is accepted, but travels without encryption")
		}
		return f
	case p.key == "":
		return bad("key", set, "there is none")
	case client.IsStatus(err, http.StatusForbidden):
		return good("key", "accepted, but it may not read runs (from the %s)", p.keyFrom)
	}
	return bad("key", set, "%v (the key comes from the %s)", err, p.keyFrom)
}

// maxSkew is how far two clocks may be apart before tokens and timers that both
// sides look at begin to disagree.
const maxSkew = 5 * time.Second

func checkClock(caps *client.Capabilities) finding {
	skew := time.Since(caps.Date).Abs()
	if skew > maxSkew {
		return bad("clock", "Let both machines keep time by NTP.", "this machine and the host are %s apart", span(skew))
	}
	return good("clock", "agrees with the host's")
}
