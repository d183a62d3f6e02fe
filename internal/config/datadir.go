package config

import "path/filepath"

// defaultData is the folder for data where the operator named none; empty if the
// environment does not say where a user's files are.
func defaultData(goos string, getenv func(string) string) string {
	under := func(base string, more ...string) string {
		if base == "" {
			return ""
		}
		return filepath.Join(append([]string{base}, more...)...)
	}
	switch goos {
	case "windows":
		return under(getenv("LocalAppData"), "fermata")
	case "darwin", "ios":
		return under(getenv("HOME"), "Library", "Application Support", "fermata")
	}
	// The specification of XDG_DATA_HOME says that a relative path is to be ignored.
	if x := getenv("XDG_DATA_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "fermata")
	}
	return under(getenv("HOME"), ".local", "share", "fermata")
}
