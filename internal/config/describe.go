package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/relax"
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
	for _, n := range Notes(c) {
		for i := range out {
			if out[i].Name == n.Setting {
				out[i].Note = n.Text
			}
		}
	}
	return out
}

// Relaxations lists the protections an operator has loosened. A host in
// production mode refuses them (Load does).
func Relaxations(c Config) []relax.Relaxation {
	return slices.Concat(relax.Egress(c.AllowEgress), relax.Webhooks(c.AllowWebhooks), relax.Issuers(c.Lanes.OIDC.Plain() || c.Lanes.OAuth2.Plain()), relax.Seams(c.ConformanceSeams))
}

// Note says what is unusual about a setting's value.
type Note struct {
	Setting string
	Text    string
}

// Notes lists what is said at the start, so that it is never forgotten: every
// relaxation, and what is none but reaches further than the default.
func Notes(c Config) []Note {
	var out []Note
	if c.Listen != "" && !c.Loopback() && c.TLSCert == "" {
		out = append(out, Note{"listen", "other machines can reach the API; put TLS in front of it"})
	}
	for _, r := range Relaxations(c) {
		out = append(out, Note{r.Setting, r.Effect})
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
