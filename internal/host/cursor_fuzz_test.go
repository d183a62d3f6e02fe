package host

import "testing"

// A cursor is read only for the list it was made for, whatever somebody makes of it.
func FuzzCursor(f *testing.F) {
	f.Add(makeCursor("a", "k"), "a", "k")
	f.Add("", "", "")
	f.Add("!!!!", "\x00", "\xff")
	f.Fuzz(func(t *testing.T, cursor, at, key string) {
		if at == "" {
			at = "a" // a page ends at something
		}
		if got, ok := readCursor(makeCursor(at, key), key); !ok || got != at {
			t.Errorf("%q of %q came back as %q, %v", at, key, got, ok)
		}
		if _, ok := readCursor(makeCursor(at, key), key+"x"); ok {
			t.Errorf("%q of %q is read as another list's", at, key)
		}
		if got, ok := readCursor(cursor, key); ok && makeCursor(got, key) != cursor {
			t.Errorf("two cursors for %q: %q", got, cursor)
		}
	})
}
