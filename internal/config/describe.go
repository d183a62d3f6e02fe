package config

import (
	"fmt"
	"strings"
)

// Line is one setting as an operator is shown it. Secrets are hidden.
type Line struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Note   string `json:"note,omitempty"` // what is unusual about the value
}

// Describe lists the effective value of every setting, with its source.
func Describe(c Config, src Sources) []Line {
	out := make([]Line, len(settings))
	for i := range settings {
		s := &settings[i]
		out[i] = Line{Name: s.Name, Value: s.get(&c), Source: src[s.Name].String()}
	}
	for _, r := range Relaxations(c) {
		for i := range out {
			if out[i].Name == r.Setting {
				out[i].Note = r.Note
			}
		}
	}
	return out
}

// Relaxation is a value that makes the host less closed than it is by default.
type Relaxation struct {
	Setting string
	Note    string
}

// Relaxations lists what an operator has opened, so that it is said at the start
// and is never forgotten.
func Relaxations(c Config) []Relaxation {
	var out []Relaxation
	if c.Listen != "" && !c.Loopback() && c.TLSCert == "" {
		out = append(out, Relaxation{"listen", "other machines can reach the API; put TLS in front of it"})
	}
	if len(c.AllowEgress) > 0 {
		out = append(out, Relaxation{"allow-egress", "nodes may call " + joinPrefixes(c.AllowEgress) + ", which is closed otherwise"})
	}
	if len(c.AllowWebhooks) > 0 {
		out = append(out, Relaxation{"allow-webhooks", "webhooks may be delivered to " + joinPrefixes(c.AllowWebhooks) + ", which is closed otherwise"})
	}
	return out
}

// Reference is the table of settings as Markdown, for the documentation.
func Reference() string {
	var b strings.Builder
	b.WriteString("| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n")
	for i := range settings {
		s := &settings[i]
		name, def := "`--"+s.Name+"`, `"+s.Name+"` in a file", s.Default
		if s.EnvOnly {
			name = s.Name + " (environment only)"
		}
		switch {
		case s.Name == "data":
			def = "the user's folder for application data"
		case def == "":
			def = "none"
		default:
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, s.Env(), def, s.Usage)
	}
	return b.String()
}
