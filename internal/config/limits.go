package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/api/edge"
	"github.com/fermata-run/fermata/internal/limit"
)

// Limits are bounds of what one tenant, one key, one address and one request may
// use. Zero is the default of the host, which follows from its other bounds.
type Limits struct {
	MaxBodyMemory            int
	TenantMaxCalls           int
	TenantMaxStreams         int
	TenantMaxConcurrentNodes int
	TenantMaxActiveRuns      int // 0 for any number
	RunMaxStreams            int
	TenantRate               string
	KeyRate                  string
	AuthFailures             string
	RequestTimeout           time.Duration
}

// auto is a bound that follows from another.
const auto = "auto"

var limitSettings = []Setting{
	number("max-body-memory", 128<<20, 16<<20, 1<<40, ServeOnly,
		"Bytes of large request bodies held at the same time, three quarters of it for one tenant; those up to 64 KiB do not count.",
		func(c *Config) *int { return &c.Limits.MaxBodyMemory }),
	{
		Name: "request-timeout", Type: "duration", Default: "2m", Scope: ServeOnly,
		Usage: "How long a call may take, from its headers to its answer; streams and polls are not calls.",
		set: func(c *Config, v string) error {
			return duration(&c.Limits.RequestTimeout, v, time.Second, time.Hour)
		},
		get: func(c *Config) string { return formatDuration(c.Limits.RequestTimeout) },
	},
	portion("tenant-max-calls", "Requests of one tenant answered at the same time; auto is three quarters of max-calls.",
		func(c *Config) *int { return &c.Limits.TenantMaxCalls }),
	portion("tenant-max-streams", "Streams and waiting polls of one tenant; auto is three quarters of max-streams.",
		func(c *Config) *int { return &c.Limits.TenantMaxStreams }),
	portion("run-max-streams", "Streams and waiting polls of one run; auto is as many as its tenant may have.",
		func(c *Config) *int { return &c.Limits.RunMaxStreams }),
	portion("tenant-max-concurrent-nodes", "Nodes of one tenant that reach outside at the same time; auto is three quarters of max-concurrent-nodes.",
		func(c *Config) *int { return &c.Limits.TenantMaxConcurrentNodes }),
	{
		Name: "tenant-max-active-runs", Type: "number", Default: none, Scope: ServeOnly,
		Usage: "Runs of one tenant, created by callers, that are under way, waiting ones too; none for any number.",
		set:   func(c *Config, v string) error { return runs(&c.Limits.TenantMaxActiveRuns, v) },
		get:   func(c *Config) string { return formatRuns(c.Limits.TenantMaxActiveRuns) },
	},
	rate("tenant-rate", none, "Requests of one tenant, such as 100/s, or 100/s:200 for bursts of up to 200, or none.",
		func(c *Config) *string { return &c.Limits.TenantRate }),
	rate("key-rate", none, "Requests of one credential's holder, written like tenant-rate.",
		func(c *Config) *string { return &c.Limits.KeyRate }),
	rate("auth-failures", "300/m", "Credentials that are none, from one address; past that, only those that have been good are looked at.",
		func(c *Config) *string { return &c.Limits.AuthFailures }),
	checked("cors-origins", "Origins, such as https://app.example.com, whose pages may read answers; each exactly as a browser sends it.",
		edge.CheckOrigin, func(c *Config) *[]string { return &c.CORSOrigins }),
	checked("allowed-hosts", "Names by which a proxy on this machine calls the host; on a loopback connection others than the loopback's own are refused.",
		edge.CheckHost, func(c *Config) *[]string { return &c.AllowedHosts }),
}

// portion makes the row of a bound that follows from another if it is not set.
func portion(name, usage string, at func(*Config) *int) Setting {
	return Setting{
		Name: name, Type: "number", Default: auto, Usage: usage, Scope: ServeOnly,
		set: func(c *Config, v string) error {
			if v == auto {
				*at(c) = 0
				return nil
			}
			if err := whole(at(c), v, 1, 1_000_000); err != nil {
				return fmt.Errorf("%w, or auto", err)
			}
			return nil
		},
		get: func(c *Config) string {
			if n := *at(c); n != 0 {
				return strconv.Itoa(n)
			}
			return auto
		},
	}
}

func rate(name, def, usage string, at func(*Config) *string) Setting {
	return Setting{
		Name: name, Type: "rate", Default: def, Usage: usage, Scope: ServeOnly,
		set: func(c *Config, v string) error {
			r, err := limit.ParseRate(v)
			if err == nil {
				*at(c) = r.String()
			}
			return err
		},
		get: func(c *Config) string { return *at(c) },
	}
}

// checked makes the row of a list whose entries have a form.
func checked(name, usage string, check func(string) error, at func(*Config) *[]string) Setting {
	return Setting{
		Name: name, Type: "list", Usage: usage, Scope: ServeOnly,
		set: func(c *Config, v string) error {
			var list []string
			if err := texts(&list, v); err != nil {
				return err
			}
			for _, s := range list {
				if err := check(s); err != nil {
					return fmt.Errorf("holds %q: it %w", s, err)
				}
			}
			*at(c) = list
			return nil
		},
		get: func(c *Config) string { return strings.Join(*at(c), ",") },
	}
}
