package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/store"
)

// ErrDamaged marks an archive that is not whole, or not as it was written.
var ErrDamaged = errors.New("the archive is damaged or cut off")

// maxLine bounds a line of an archive.
const maxLine = 64 << 10

// Read visits the rows of an archive. What visit is given is not to be relied on
// before Read has returned without an error: only then has everything been verified.
func Read(r io.Reader, visit store.Visit) (Header, error) {
	return read(r, store.Tables, store.TablesVersion, visit)
}

func read(r io.Reader, tables []*store.Table, version int, visit store.Visit) (Header, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if err := readFirst(in); err != nil {
		return Header{}, err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return Header{}, damaged(err)
	}
	a := &reader{tables: tables, version: version, visit: visit, hash: sha256.New()}
	a.r = bufio.NewReaderSize(z, 256<<10)
	return a.header, a.all()
}

// refused is what is wrong with an archive that is whole.
type refused struct{ error }

// visited is a failure of whoever is given rows.
type visited struct{ error }

func (v visited) Unwrap() error { return v.error }

// damaged says that an archive cannot be read any further.
func damaged(err error) error {
	var r refused
	var v visited
	switch {
	case errors.As(err, &r):
		return r.error
	case errors.As(err, &v):
		return v.error
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func refuse(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

func readFirst(in *bufio.Reader) error {
	line, err := in.Peek(len(firstLine) + 8)
	if len(line) == 0 {
		return damaged(errors.Join(err, io.ErrUnexpectedEOF))
	}
	text, _, whole := strings.Cut(string(line), "\n")
	n, is := strings.CutPrefix(text, strings.TrimSuffix(firstLine, "%d\n"))
	form, err := strconv.Atoi(n)
	switch {
	case !is || !whole || err != nil || form < 1:
		return errors.New("this is not an archive of fermata")
	case form > Form:
		return fmt.Errorf("the archive has form %d and this program reads up to %d: use a newer program", form, Form)
	}
	_, err = in.Discard(len(text) + 1)
	return err
}

// reader reads what is compressed.
type reader struct {
	tables  []*store.Table
	version int
	visit   store.Visit
	header  Header

	r    *bufio.Reader
	hash hash.Hash // of the lines
}

func (a *reader) line(into any, strict bool) error {
	var line []byte
	for {
		part, err := a.r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(line) > maxLine {
			return errors.New("a line is too long")
		}
	}
	a.hash.Write(line) //nolint:errcheck // a hash takes everything
	d := json.NewDecoder(bytes.NewReader(line))
	if strict {
		d.DisallowUnknownFields()
	}
	return d.Decode(into)
}

func (a *reader) all() error {
	if err := a.line(&a.header, false); err != nil {
		return damaged(err)
	}
	if a.header.Tables > a.version {
		return fmt.Errorf("the archive was written by fermata %s, whose store has generation %d, and this program knows up to %d: use a newer program",
			a.header.Program, a.header.Tables, a.version)
	}
	if a.header.Tables < 1 {
		return damaged(errors.New("it says no generation"))
	}
	n := 0
	for _, t := range a.tables {
		if t.Since > a.header.Tables {
			continue
		}
		n++
		if err := a.table(t); err != nil {
			return damaged(err)
		}
	}
	is, end := hex.EncodeToString(a.hash.Sum(nil)), endLine{}
	if err := a.line(&end, true); err != nil {
		return damaged(err)
	}
	if end.Tables != n || end.SHA256 != is {
		return damaged(errors.New("its digest is another one"))
	}
	if _, err := a.r.ReadByte(); !errors.Is(err, io.EOF) { // this also verifies the sum of gzip
		return damaged(errors.Join(errors.New("there is something behind its end"), err))
	}
	return nil
}

// table reads a table and gives its rows the shape of today.
func (a *reader) table(t *store.Table) error {
	var l tableLine
	if err := a.line(&l, true); err != nil {
		return err
	}
	if l.Table != t.Name {
		return fmt.Errorf("table %.64q in place of %s", l.Table, t.Name)
	}
	had, place, err := a.columns(t, &l)
	if err != nil {
		return err
	}
	sum := newSummer(had, false)
	old, row := make([]store.Value, len(had)), make([]store.Value, len(t.Columns))
	for i := range t.Columns {
		row[i].Null = t.Columns[i].Null // unless the archive says otherwise
	}
	for {
		mark, err := a.r.ReadByte()
		if err != nil {
			return err
		}
		if mark == noMore {
			break
		}
		if mark != oneMore {
			return errors.New("neither a row nor the end of a table")
		}
		if err := readRow(a.r, had, old); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		sum.add(old)
		for i := range old {
			row[place[i]] = old[i]
		}
		if err := t.Check(row); err != nil {
			return err
		}
		if err := a.visit(t, row); err != nil {
			return visited{err}
		}
	}
	var want Sum
	if err := a.line(&want, true); err != nil {
		return err
	}
	if is := sum.sum(t.Name); is != want {
		return fmt.Errorf("table %s: its digest is another one", t.Name)
	}
	return nil
}

// columns says which columns an archive has, and where they are in a row of today.
func (a *reader) columns(t *store.Table, l *tableLine) (had []store.Column, place []int, err error) {
	next := 0
	for _, c := range l.Columns {
		for next < len(t.Columns) && t.Columns[next].Since > a.header.Tables {
			next++
		}
		if next == len(t.Columns) || t.Columns[next].Name != c[0] || string(t.Columns[next].Kind) != c[1] {
			return nil, nil, refuse("the archive has a column %.64q in table %s that this program does not know there", c[0], t.Name)
		}
		had, place = append(had, t.Columns[next]), append(place, next)
		next++
	}
	for _, c := range t.Columns[next:] {
		if c.Since <= a.header.Tables {
			return nil, nil, refuse("the archive has no column %s in table %s", c.Name, t.Name)
		}
	}
	return had, place, nil
}
