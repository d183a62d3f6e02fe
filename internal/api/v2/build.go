package v2

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"sync"
)

// build names the program that serves: the commit it was made of, or else the
// digest of its file.
var build = sync.OnceValue(func() map[string]string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && s.Value != "" {
				return map[string]string{"kind": "commit", "id": s.Value}
			}
		}
	}
	return map[string]string{"kind": "artifact-sha256", "id": digestOfProgram()}
})

func digestOfProgram() string {
	h := sha256.New()
	if path, err := os.Executable(); err == nil {
		if f, err := os.Open(path); err == nil {
			defer f.Close()
			if _, err := io.Copy(h, f); err == nil {
				return hex.EncodeToString(h.Sum(nil))
			}
		}
	}
	return "unknown"
}
