package overlap

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/webhook"
)

// Wire is one major of the protocol, served.
type Wire interface {
	http.Handler

	// Methods are the methods of a path, as it is written in a request; none if it
	// is no operation's.
	Methods(escapedPath string) []string
	// Stamp names the version of the protocol in an answer that is given before a
	// request gets to the wire.
	Stamp(h http.Header, r *http.Request)
	// Routes is the route table.
	Routes() []api.Route
}

// Config is what an older wire is made of. Its door is its own; gate and capacity
// are the host's.
type Config struct {
	Door     door.Config
	Capacity *api.Capacity
	Timeout  time.Duration // of a call
	Log      *slog.Logger
	Version  string // of the implementation
	Base     string // URL under which the world calls the API, without a / at its end; empty if nobody has said
}

// Older is the wire of an older major.
type Older struct {
	Version string // of the protocol, such as 1.0
	Prefix  string // of its paths, such as /v1
	New     func(Config) Wire

	// Admits and Exposes are headers that this wire has and the newer one has not: of
	// requests, and of answers. Pages of other origins are told so.
	Admits, Exposes []string
	// Hooks makes the form of deliveries to whoever has subscribed under this major. It is
	// told the version of the implementation, and what Config.Base says.
	Hooks func(version, base string) webhook.Form
}

var older *Older

// Register puts an older wire beside this major's. It is called from an init.
func Register(o Older) { older = &o }

// Registered is the older wire that was built into this program.
func Registered() (Older, bool) {
	if older == nil {
		return Older{}, false
	}
	return *older, true
}
