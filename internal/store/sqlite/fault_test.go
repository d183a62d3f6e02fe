package sqlite

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// faultVFS is the file system, except that the write-ahead log fails on demand.
type faultVFS struct {
	vfs.VFSFilename
	full, unsynced atomic.Bool
	allow          atomic.Int32 // writes that still work once full is set
}

func (v *faultVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := v.VFSFilename.OpenFilename(name, flags)
	if err == nil && flags&vfs.OPEN_WAL != 0 {
		f = faultFile{f, v}
	}
	return f, out, err
}

type faultFile struct {
	vfs.File
	v *faultVFS
}

func (f faultFile) WriteAt(p []byte, off int64) (int, error) {
	if f.v.full.Load() && f.v.allow.Add(-1) < 0 {
		return 0, sqlite3.FULL
	}
	return f.File.WriteAt(p, off)
}

func (f faultFile) Sync(flags vfs.SyncFlag) error {
	if f.v.unsynced.Load() {
		return sqlite3.IOERR_FSYNC
	}
	return f.File.Sync(flags)
}

// TestDiskFailure: when the disk is full or cannot sync, every step of the batch
// fails, the log stays whole, and the store goes on once there is room again.
func TestDiskFailure(t *testing.T) {
	v := &faultVFS{VFSFilename: vfs.Find("os").(vfs.VFSFilename)}
	vfs.Register("fault", v)
	defer vfs.Unregister("fault")
	for name, set := range map[string]func(on bool, allow int32){
		"full": func(on bool, allow int32) { v.allow.Store(allow); v.full.Store(on) },
		"sync": func(on bool, allow int32) { v.unsynced.Store(on) },
	} {
		for _, allow := range []int32{0, 1, 5, 12} {
			t.Run(fmt.Sprint(name, " after ", allow), func(t *testing.T) {
				dir := t.TempDir()
				s := openTest(t, dir, Options{vfs: "fault"})
				a, b := newStep(3), newStep(3)
				for _, step := range []*store.Append{a, b} {
					if err := s.Runs().Append(t.Context(), step); err != nil {
						t.Fatal(err)
					}
				}
				nextA, nextB, c := nextStep(a, 200), nextStep(b, 200), newStep(200)
				set(true, allow)
				errs := gather(t, s, appending(s, nextA), appending(s, nextB), appending(s, c))
				pinged := s.Ping(t.Context()) // as long as it lasts, with nobody who writes
				set(false, 0)
				if !errors.Is(pinged, store.ErrUnavailable) && (name == "sync" || allow == 0) {
					t.Errorf("pinged: %v", pinged)
				}
				for range 2 {
					if err := s.Ping(t.Context()); err != nil {
						t.Errorf("pinged, with room again: %v", err)
					}
				}
				want := map[*store.Append]int{nextA: 3, nextB: 3, c: -1}
				for i, step := range []*store.Append{nextA, nextB, c} {
					if errs[i] == nil {
						t.Fatalf("step %d was written", i)
					}
					if errors.Is(errs[i], store.ErrStale) || errors.Is(errs[i], store.ErrExists) || !errors.Is(errs[i], store.ErrUnavailable) {
						t.Fatalf("step %d: %v", i, errs[i])
					}
					if n := count(t, s, step.Row.ID); n != want[step] {
						t.Fatalf("run %d has %d events, want %d", i, n, want[step])
					}
					if err := s.Runs().Append(t.Context(), step); err != nil {
						t.Fatalf("step %d, again: %v", i, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openTest(t, dir, Options{})
				for step := range want {
					if n := count(t, s, step.Row.ID); n != int(step.Row.Seq)+1 {
						t.Fatalf("%d events after a restart, want %d", n, step.Row.Seq+1)
					}
				}
			})
		}
	}
}
