package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
)

// TestOlderArchives: an archive from before a column and a table were added is read,
// and what it does not have is NULL, 0 or empty; one that should have them is refused.
func TestOlderArchives(t *testing.T) {
	col := func(name string, kind store.Kind, null bool, since int) store.Column {
		return store.Column{Name: name, Kind: kind, Null: null, Since: since}
	}
	today := []*store.Table{
		{Name: "a", Key: 1, Since: 1, Columns: []store.Column{
			col("id", store.Text, false, 1), col("fresh", store.Int, false, 2), col("n", store.Int, false, 1),
			col("maybe", store.Bytes, true, 2), col("label", store.Bytes, false, 2),
		}},
		{Name: "b", Key: 1, Since: 2, Columns: []store.Column{col("id", store.Text, false, 2)}},
	}
	old := []store.Column{today[0].Columns[0], today[0].Columns[2]}
	write := func(generation int) *bytes.Buffer {
		var out bytes.Buffer
		fmt.Fprintf(&out, firstLine, Form)
		z := gzip.NewWriter(&out)
		w := &writer{w: bufio.NewWriter(z), hash: sha256.New()}
		sum := newSummer(old, false)
		row := []store.Value{{Bytes: []byte("x")}, {Int: -7}}
		sum.add(row)
		steps := []func() error{
			func() error { return w.line(Header{Tables: generation, Program: "0"}) },
			func() error {
				return w.line(tableLine{Table: "a", Columns: [][2]string{{"id", "text"}, {"n", "int"}}})
			},
			func() error { _, err := w.w.Write(appendRow([]byte{oneMore}, old, row, false)); return err },
			func() error { return w.w.WriteByte(noMore) },
			func() error { return w.line(sum.sum("a")) },
			func() error { return w.line(endLine{Tables: 1, SHA256: fmt.Sprintf("%x", w.hash.Sum(nil))}) },
			w.w.Flush, z.Close,
		}
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		return &out
	}
	var rows []string
	_, err := read(write(1), today, 2, func(tab *store.Table, row []store.Value) error {
		rows = append(rows, fmt.Sprintf("%s %s %d %d %v %q", tab.Name, row[0].Bytes, row[1].Int, row[2].Int, row[3].Null, row[4].Bytes))
		return nil
	})
	if err != nil || strings.Join(rows, "; ") != `a x 0 -7 true ""` {
		t.Errorf("%q: %v", rows, err)
	}
	_, err = read(write(2), today, 2, func(*store.Table, []store.Value) error { return nil })
	if err == nil || !strings.Contains(err.Error(), `column "n" in table a`) {
		t.Errorf("an archive of today without a column: %v", err)
	}
}
