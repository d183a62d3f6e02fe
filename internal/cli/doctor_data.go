package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Free space below which a host is in danger.
const minFree = 256 << 20

const (
	// lockName is the file a host locks in its data folder.
	lockName = "fermata.lock"
	// unfinishedName is what a restore writes until it is done.
	unfinishedName = "fermata.db.unfinished"
)

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// checkData looks at the data folder of a host on this machine.
func checkData(dir string) []finding {
	if dir == "" {
		return []finding{bad("data", "Set HOME, or give a folder by --data.", "the environment does not say where your files are")}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{good("data", "%s is not there yet; the first start makes it", dir)}
	case err != nil:
		return []finding{bad("data", "Make the folder readable for you.", "%v", err)}
	case !info.IsDir():
		return []finding{bad("data", "Give a folder by --data.", "%s is not a folder", dir)}
	}
	out := []finding{checkWritable(dir, info), checkLock(dir)}
	if left := filepath.Join(dir, unfinishedName); there(left) {
		out = append(out, bad("restore", "Run it again, or remove the file to begin with nothing.", "a restore or a copy into the folder is under way, or has not come to its end (%s)", left))
	}
	if free, ok := freeSpace(dir); ok {
		if free < minFree {
			out = append(out, bad("disk", "Make room: a full disk stops every run.", "only %s free", bytesText(free)))
		} else {
			out = append(out, good("disk", "%s free", bytesText(free)))
		}
	}
	return out
}

func checkWritable(dir string, info fs.FileInfo) finding {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return bad("data", "Give your user the right to write there, or another folder by --data.", "%s cannot be written: %v", dir, err)
	}
	f.Close()           //nolint:errcheck // nothing was written
	os.Remove(f.Name()) //nolint:errcheck // it is only a probe
	switch mode, open := openToOthers(dir); {
	case open && info.Mode().Perm()&0o022 != 0:
		return bad("data", "Run: chmod 700 "+dir, "others may write into %s (mode %s)", dir, mode)
	case open:
		return bad("data", "Run: chmod 700 "+dir, "others may look into %s (mode %s)", dir, mode)
	}
	return good("data", "%s", dir)
}

// openToOthers reports whether other users of the machine can reach into a folder.
func openToOthers(dir string) (mode string, open bool) {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" {
		return "", false
	}
	perm := info.Mode().Perm()
	return fmt.Sprintf("%#o", perm), perm&0o077 != 0
}

func checkLock(dir string) finding {
	switch held, err := locked(filepath.Join(dir, lockName)); {
	case err != nil:
		return bad("lock", "Make the file readable and writable for you.", "%v", err)
	case held:
		return good("lock", "a host is using the data folder")
	}
	return good("lock", "no host is using the data folder")
}

func bytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
