package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// lockFile marks a data folder as taken. Its content means nothing: only the
// lock on it does, and the system drops that when the process ends, however.
const lockFile = "fermata.lock"

// errInUse is what takeLock fails with if another process holds the folder.
var errInUse = errors.New("data folder is in use by another process")

// prepare makes the data folder and an empty database file, readable by their
// owner alone, where there are none, and locks the folder.
func prepare(path string) (unlock func() error, err error) {
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err = takeLock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := leftUnfinished(path); err != nil {
		return nil, errors.Join(err, unlock())
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// makeDir makes dir, and makes its entry durable: SQLite takes care of the
// folder's content, but not of the folder itself.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // has no way to sync a folder
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}

// restrict narrows the files that SQLite has made beside the database.
func restrict(path string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		err := os.Chmod(path+suffix, 0o600)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
