package config

import (
	"strings"
	"unicode"

	"github.com/spf13/pflag"
)

// FileFlag names the flag, and with FERMATA_CONFIG the environment variable, of
// the configuration file itself.
const (
	FileFlag = "config"
	FileEnv  = "FERMATA_CONFIG"
)

// Bind adds a flag for every setting of the scope, and --config. What the flags
// hold is read by Load.
func Bind(fs *pflag.FlagSet, scope Scope) {
	fs.String(FileFlag, "", "file to read settings from (default: fermata.yaml or fermata.json in the data folder)")
	for i := range settings {
		s := &settings[i]
		if s.EnvOnly || s.Scope > scope {
			continue
		}
		fs.Var(&flagValue{setting: s, text: s.Default}, s.Name, phrase(s.Usage))
	}
}

// phrase makes of a sentence what stands behind a flag: no capital, unless its
// first word is an abbreviation, and no full stop.
func phrase(sentence string) string {
	p := strings.TrimSuffix(sentence, ".")
	if len(p) > 1 && unicode.IsUpper(rune(p[1])) {
		return p
	}
	return strings.ToLower(p[:1]) + p[1:]
}

// flagValue holds a flag's text as it was given. It is checked by Load, which
// can say where a bad value came from.
type flagValue struct {
	setting *Setting
	text    string
	given   bool
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.setting.Type }

// Set implements pflag.Value. A list may be given in several flags.
func (v *flagValue) Set(s string) error {
	if v.setting.Type == "list" && v.given {
		s = v.text + "," + s
	}
	v.text, v.given = s, true
	return nil
}
