package fermata

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/archive"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// Moved says what a store held that was backed up, restored or copied: its tables with
// their rows and digests, and whether its audit log holds.
type Moved = archive.Report

// BackupHeader is what a backup says of itself.
type BackupHeader = archive.Header

// ErrStoreInUse is what CopyStore fails with if a host uses the store, and ErrStoreUsed
// what fails if there is something in a store that is to be written.
var (
	ErrStoreInUse = store.ErrInUse
	ErrStoreUsed  = store.ErrUsed
)

// place is where a store is: the folder of a host's data, or the address of a
// database (Config.Store).
func place(of string) store.Place {
	if strings.HasPrefix(of, "postgres://") || strings.HasPrefix(of, "postgresql://") {
		return postgres.At(of)
	}
	return sqlite.At(filepath.Join(of, "fermata.db"))
}

// Backup writes an archive of a store (a folder of data, or an address as in
// Config.Store) as it is at one moment. Hosts may be using it. The master key that its
// secrets are sealed by is not in it.
func Backup(ctx context.Context, from string, w io.Writer) (Moved, error) {
	return archive.Write(ctx, w, place(from), archive.Header{Program: Version, Taken: time.Now().UTC()}, false)
}

// VerifyBackup reads an archive and says whether it is whole.
func VerifyBackup(r io.Reader) (BackupHeader, Moved, error) { return archive.Verify(r) }

// Restore makes a store of an archive, where there is none: all of it or nothing.
func Restore(ctx context.Context, r io.Reader, to string) (BackupHeader, Moved, error) {
	return archive.Restore(ctx, r, place(to))
}

// CopyStore makes a store of another one, on whatever backend: all of it or nothing.
// Unless it is done online it fails if a host uses the store that is copied. What hosts
// do there after the moment of an online copy is not in it.
func CopyStore(ctx context.Context, from, to string, online bool) (Moved, error) {
	return archive.Copy(ctx, place(from), place(to), !online)
}

// StoreFinding is the outcome of one look at a shared database.
type StoreFinding = postgres.Finding

// ExamineStore looks at the database of an address (Config.Store) as a host that is to
// use it, and changes nothing.
func ExamineStore(ctx context.Context, address string) []StoreFinding {
	return postgres.Examine(ctx, address)
}
