package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// profile is one host that a person works with.
type profile struct {
	Server string `json:"server"`
	Key    string `json:"key"`
}

// profilePath is where profiles are kept; empty if the environment does not say
// where a user's files are.
func (a *app) profilePath() string {
	base := a.env.Getenv("XDG_CONFIG_HOME")
	switch {
	case runtime.GOOS == "windows":
		base = a.env.Getenv("AppData")
	case !filepath.IsAbs(base):
		if base = a.env.Getenv("HOME"); base != "" {
			base = filepath.Join(base, ".config")
		}
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, "fermata", "profiles.json")
}

// profile reads the profile that is meant. Only one that was asked for has to
// be there.
func (a *app) profile(wanted string) (profile, string, error) {
	name := wanted
	if name == "" {
		name = a.env.Getenv("FERMATA_PROFILE")
	}
	asked := name != ""
	if !asked {
		name = "default"
	}
	path := a.profilePath()
	if path == "" {
		if asked {
			return profile{}, "", errors.New("profile: the environment does not say where your files are; set HOME")
		}
		return profile{}, name, nil
	}
	all, err := readProfiles(path)
	if err != nil {
		return profile{}, "", err
	}
	p, ok := all[name]
	if !ok && asked {
		return profile{}, "", fmt.Errorf("profile: there is no profile %q in %s", name, path)
	}
	return p, name, nil
}

func readProfiles(path string) (map[string]profile, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	// It holds keys: what others may read is not a secret any more.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("profile: others may read %s, which holds API keys; run: chmod 600 %s", path, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	var doc struct {
		Profiles map[string]profile `json:"profiles"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf(`profile: %s cannot be read: %w; it looks like {"profiles":{"default":{"server":"…","key":"…"}}}`, path, err)
	}
	return doc.Profiles, nil
}
