package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fermata-run/fermata/internal/relax"
	"github.com/spf13/pflag"
)

// Kind is a kind of source, by rising precedence.
type Kind string

// The kinds of source.
const (
	FromDefault Kind = "default"
	FromFile    Kind = "file"
	FromEnv     Kind = "environment"
	FromFlag    Kind = "flag"
)

// Source says where a value came from.
type Source struct {
	Kind  Kind
	Where string // the flag, the variable, or the file with its line
}

func (s Source) String() string {
	if s.Where == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + " " + s.Where
}

// Sources says where each setting's value came from, by the setting's name.
type Sources map[string]Source

// Given reports whether somebody set a value.
func (s Sources) Given(name string) bool {
	k := s[name].Kind
	return k != "" && k != FromDefault
}

// Input is what Load reads.
type Input struct {
	Flags  *pflag.FlagSet      // with the flags of Bind, parsed; nil for none
	Getenv func(string) string // nil for the process's environment
	GOOS   string              // whose defaults hold; empty for this machine's

	// OwnData keeps Load from looking at the data folder of the environment or
	// the default, and at a file in it: the data is of this very command.
	OwnData bool
}

// Load reads the configuration. Its error is one line that names the setting,
// the value and its source.
func Load(in Input) (Config, Sources, error) {
	if in.Getenv == nil {
		in.Getenv = os.Getenv
	}
	if in.GOOS == "" {
		in.GOOS = runtime.GOOS
	}
	l := loader{in: in, src: Sources{}}
	if err := l.file(); err != nil {
		return Config{}, nil, err
	}
	for i := range settings {
		if err := l.setting(&settings[i]); err != nil {
			return Config{}, nil, err
		}
	}
	// A workflow that is run directly serves nobody, and has no lanes.
	if !in.OwnData {
		var err error
		if l.cfg.Lanes, err = ReadLanes(&l.cfg); err != nil {
			return Config{}, nil, fmt.Errorf("%w (from the %s)", err, l.src["identity"])
		}
	}
	if err := relax.Check(l.cfg.Mode, Relaxations(l.cfg)); err != nil {
		var r relax.Refused
		errors.As(err, &r)
		return Config{}, nil, fmt.Errorf("%w (from the %s; mode from the %s)", err, l.src[r.Setting], l.src["mode"])
	}
	return l.cfg, l.src, nil
}

type loader struct {
	in   Input
	cfg  Config
	src  Sources
	path string // of the file; empty for none
	vals map[string]fileValue
}

// setting takes the value of highest precedence.
func (l *loader) setting(s *Setting) error {
	v, src := l.find(s)
	l.src[s.Name] = src
	if v == "" && src.Kind == FromDefault {
		return nil
	}
	if err := s.set(&l.cfg, v); err != nil {
		shown := fmt.Sprintf("%q ", v)
		if s.EnvOnly || s.Hidden {
			shown = ""
		}
		return fmt.Errorf("%s: %s%w (from the %s)", s.Name, shown, err, src)
	}
	return nil
}

func (l *loader) find(s *Setting) (string, Source) {
	if f := l.flag(s.Name); f != "" {
		return f, Source{FromFlag, "--" + s.Name}
	}
	if v := l.in.Getenv(s.Env()); v != "" && (s.Name != "data" || !l.in.OwnData) {
		return v, Source{FromEnv, s.Env()}
	}
	if v, ok := l.vals[s.Name]; ok {
		return v.text, Source{FromFile, fmt.Sprintf("%s:%d", l.path, v.line)}
	}
	if s.Name == "data" && !l.in.OwnData {
		return defaultData(l.in.GOOS, l.in.Getenv), Source{Kind: FromDefault}
	}
	return s.Default, Source{Kind: FromDefault}
}

func (l *loader) flag(name string) string {
	if l.in.Flags == nil {
		return ""
	}
	f := l.in.Flags.Lookup(name)
	if f == nil || !f.Changed {
		return ""
	}
	return f.Value.String()
}

// file reads the configuration file, if there is one.
func (l *loader) file() error {
	path, from := l.flag(FileFlag), "flag --"+FileFlag
	if path == "" {
		path, from = l.in.Getenv(FileEnv), "environment "+FileEnv
	}
	inData := false
	if path == "" {
		found, err := l.besideData()
		if err != nil || found == "" {
			return err
		}
		path, inData = found, true
	}
	vals, err := readFile(path)
	if err != nil {
		if !inData && errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("config: there is no file %q (from the %s)", path, from)
		}
		return err
	}
	if v, ok := vals["data"]; ok && inData {
		return fmt.Errorf("data: %q cannot be set by a file inside the data folder (from the file %s:%d)", v.text, path, v.line)
	}
	if _, ok := vals["data"]; ok && l.in.OwnData {
		delete(vals, "data")
	}
	l.path, l.vals = path, vals
	return nil
}

// besideData looks for a file in the data folder.
func (l *loader) besideData() (string, error) {
	data, _ := l.find(&Setting{Name: "data"})
	if data == "" {
		return "", nil
	}
	found := ""
	for _, name := range []string{"fermata.yaml", "fermata.yml", "fermata.json"} {
		p := filepath.Join(data, name)
		if _, err := os.Stat(p); err != nil {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("config: the data folder holds both %s and %s; remove one of them", filepath.Base(found), name)
		}
		found = p
	}
	return found, nil
}
