package archive

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// Form is the form of the file that this program writes, and the newest it reads.
const Form = 1

// firstLine begins every archive, before what is compressed.
const firstLine = "fermata archive %d\n"

// Header is what an archive says of itself.
type Header struct {
	Tables  int       `json:"tables"`  // the generation of store.Tables
	Program string    `json:"program"` // version of the program that has written it
	Backend string    `json:"backend"` // that it was read from
	Taken   time.Time `json:"taken"`
}

// tableLine stands before the rows of a table, sumLine behind them, endLine at the end.
type tableLine struct {
	Table   string      `json:"table"`
	Columns [][2]string `json:"columns"` // name and kind
}

type endLine struct {
	Tables int    `json:"end"`
	SHA256 string `json:"sha256"` // of all lines before this one, which hold the digests of the rows
}

// Write writes an archive of what is in a place at one moment. Hosts may go on using
// it; with alone it fails with store.ErrInUse if one does.
func Write(ctx context.Context, w io.Writer, from store.Place, h Header, alone bool) (Report, error) {
	if _, err := fmt.Fprintf(w, firstLine, Form); err != nil {
		return Report{}, err
	}
	h.Tables, h.Backend = store.TablesVersion, from.Backend()
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return Report{}, err
	}
	out := &writer{hash: sha256.New()}
	out.w = bufio.NewWriterSize(z, 256<<10)
	if err := out.line(h); err != nil {
		return Report{}, err
	}
	see := newFollower()
	err = from.Dump(ctx, alone, func(t *store.Table, row []store.Value) error {
		if err := t.Check(row); err != nil {
			return err
		}
		if !fits(row) { // better said now than when it is needed
			return fmt.Errorf("a row of %s has more than the %d bytes that an archive can hold", t.Name, maxRow)
		}
		if err := see.visit(t, row); err != nil {
			return err
		}
		return out.row(t, row)
	})
	if err == nil {
		err = out.end()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return Report{}, err
	}
	return see.end(), nil
}

// writer writes what is compressed.
type writer struct {
	w    *bufio.Writer
	hash hash.Hash // of the lines
	done int       // tables that have been written or begun
	sum  *summer   // of the last of them; nil before its first row
	buf  []byte
}

func (w *writer) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		b = append(b, '\n')
		w.hash.Write(b) //nolint:errcheck // a hash takes everything
		_, err = w.w.Write(b)
	}
	return err
}

func (w *writer) row(t *store.Table, row []store.Value) error {
	for w.done == 0 || store.Tables[w.done-1] != t {
		if err := w.next(); err != nil {
			return err
		}
	}
	w.sum.add(row)
	w.buf = appendRow(append(w.buf[:0], oneMore), t.Columns, row, false)
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 1<<20 {
		w.buf = nil
	}
	return err
}

// next ends the table that was begun and begins the one behind it.
func (w *writer) next() error {
	if err := w.close(); err != nil {
		return err
	}
	if w.done == len(store.Tables) {
		return fmt.Errorf("archive: tables do not come in order")
	}
	t := store.Tables[w.done]
	w.done++
	w.sum = newSummer(t.Columns, false)
	l := tableLine{Table: t.Name}
	for i := range t.Columns {
		l.Columns = append(l.Columns, [2]string{t.Columns[i].Name, string(t.Columns[i].Kind)})
	}
	return w.line(l)
}

func (w *writer) close() error {
	if w.sum == nil {
		return nil
	}
	if err := w.w.WriteByte(noMore); err != nil {
		return err
	}
	return w.line(w.sum.sum(store.Tables[w.done-1].Name))
}

func (w *writer) end() error {
	for w.done < len(store.Tables) {
		if err := w.next(); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	if err := w.line(endLine{Tables: w.done, SHA256: hex.EncodeToString(w.hash.Sum(nil))}); err != nil {
		return err
	}
	return w.w.Flush()
}
