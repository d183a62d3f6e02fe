package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
)

// smallRows lowers the bound of rows for a test.
func smallRows(t *testing.T, n int64) {
	was := maxRow
	maxRow = n
	t.Cleanup(func() { maxRow = was })
}

// begun is an archive up to its first row, which rest writes.
func begun(t *testing.T, tab *store.Table, rest func(w *bufio.Writer)) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, firstLine, Form)
	z := gzip.NewWriter(&out)
	w := &writer{w: bufio.NewWriter(z), hash: sha256.New()}
	l := tableLine{Table: tab.Name}
	for _, c := range tab.Columns {
		l.Columns = append(l.Columns, [2]string{c.Name, string(c.Kind)})
	}
	if err := errors.Join(w.line(Header{Tables: store.TablesVersion}), w.line(l)); err != nil {
		t.Fatal(err)
	}
	rest(w.w)
	if err := errors.Join(w.w.Flush(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestRowsAreBounded: what compresses to almost nothing may be large in one value or in
// many of a row. It is refused before all of it is in memory.
func TestRowsAreBounded(t *testing.T) {
	const most = 1 << 20
	smallRows(t, most)
	tab := store.Tables[0]
	text := &store.Table{Name: tab.Name, Key: 1, Since: 1}
	for i := range 20 {
		text.Columns = append(text.Columns, store.Column{Name: fmt.Sprint("c", i), Kind: store.Bytes, Since: 1})
	}
	for name, values := range map[string]int{"one value": 1, "many values": 20} {
		file := begun(t, text, func(w *bufio.Writer) {
			w.WriteByte(oneMore) //nolint:errcheck // Flush says it
			each := 2 * most / values
			for range values {
				w.WriteByte(isBytes)                             //nolint:errcheck // as above
				w.Write(binary.AppendUvarint(nil, uint64(each))) //nolint:errcheck // as above
				w.Write(bytes.Repeat([]byte{0}, each))           //nolint:errcheck // as above
			}
		})
		_, err := read(file, []*store.Table{text}, store.TablesVersion, func(*store.Table, []store.Value) error {
			t.Errorf("%s: a row of twice the bound was read", name)
			return nil
		})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rowsOf is a place with one row.
type rowsOf struct {
	store.Place
	tab *store.Table
	row []store.Value
}

func (rowsOf) Backend() string { return "test" }

func (p rowsOf) Dump(_ context.Context, _ bool, visit store.Visit) error { return visit(p.tab, p.row) }

// TestNoArchiveThatCannotBeRead: a row that could not be restored is no backup.
func TestNoArchiveThatCannotBeRead(t *testing.T) {
	smallRows(t, 1000)
	tab := store.TableOf("tenants")
	row := make([]store.Value, len(tab.Columns))
	for size, fine := range map[int]bool{1000: true, 1001: false} {
		row[0].Bytes = bytes.Repeat([]byte("a"), size)
		var out bytes.Buffer
		_, err := Write(t.Context(), &out, rowsOf{tab: tab, row: row}, Header{}, false)
		if fine != (err == nil) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err != nil {
			continue
		}
		if _, _, err := Verify(&out); err != nil {
			t.Errorf("%d bytes are written and cannot be read: %v", size, err)
		}
	}
}

// TestFencesStayInRange: a fence that cannot be raised any more is refused, and does not
// become a negative one.
func TestFencesStayInRange(t *testing.T) {
	tab := store.TableOf("runs")
	row := make([]store.Value, len(tab.Columns))
	for _, n := range []int64{-1, 1 << 62, 1<<63 - 1} {
		for i := range tab.Columns {
			if tab.Columns[i].Fence {
				row[i].Int = n
			}
		}
		if err := tab.Check(row); err == nil {
			t.Errorf("a fence of %d is taken", n)
		}
	}
}

// TestMastersAreBounded: what is listed of an archive is bounded.
func TestMastersAreBounded(t *testing.T) {
	see := newFollower()
	tab := store.TableOf("vault_keys")
	for i := range 10 * maxMasters {
		row := make([]store.Value, len(tab.Columns))
		row[2].Bytes = fmt.Append(nil, "m", i)
		if err := see.visit(tab, row); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(see.end().Masters); n != maxMasters {
		t.Errorf("%d master keys are listed", n)
	}
}
