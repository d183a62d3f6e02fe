package store

import (
	"context"
	"errors"
	"fmt"
)

// Place is where a store is kept, seen from outside: what copies a store from one
// place to another needs no host, and disturbs none. Its rows are the same whatever
// the backend (Tables): what one has dumped, another one loads.
type Place interface {
	// Backend names the kind of place.
	Backend() string

	// Dump visits every row of one moment: the tables in the order of Tables, and
	// the rows of each by the bytes of their keys. Hosts may use the store meanwhile.
	// With alone it fails with ErrInUse if one does, before or, as far as the backend
	// can tell, while it reads.
	Dump(ctx context.Context, alone bool, visit Visit) error

	// Load makes a store of rows. fill puts them, in the order in which Dump visits;
	// check is given a way to read what has been written, and its failure undoes all.
	// Nobody sees anything before the end, which is durable: whatever happens before
	// it leaves nothing, or something that no host starts on. It fails with ErrUsed
	// if there is anything in the place, and with ErrInUse if a host uses it.
	Load(ctx context.Context, fill func(put Visit) error, check func(read func(Visit) error) error) error
}

var (
	// ErrUsed: there is something in a place already.
	ErrUsed = errors.New("store: there is something in it already")
	// ErrInUse: a host uses the place.
	ErrInUse = errors.New("store: a host is using it")
)

// Visit is given one row. It keeps nothing of it.
type Visit func(t *Table, row []Value) error

// Value is one value of a row: NULL, or Int of a column of the kinds Int and Bool,
// or Bytes of the others.
type Value struct {
	Null  bool
	Int   int64
	Bytes []byte
}

// Kind says what the values of a column are.
type Kind string

const (
	// Text is text of a narrow grammar: UTF-8 without NUL.
	Text Kind = "text"
	// Bytes are any bytes, whether a backend calls them text or not.
	Bytes Kind = "bytes"
	// Int is a number of 64 bits.
	Int Kind = "int"
	// Bool is 0 or 1.
	Bool Kind = "bool"
)

// Whole reports whether values of the kind are in Value.Int.
func (k Kind) Whole() bool { return k == Int || k == Bool }

// Column is one column of a table.
type Column struct {
	Name string
	Kind Kind
	Null bool // it may be NULL

	// Fence is raised whenever a store is loaded, so that nobody who has known the
	// rows elsewhere can write to them here. It is not compared.
	Fence bool

	// Since is the generation of Tables that the column came with. In rows of an
	// older one it is NULL or, if it may not be, 0 or empty.
	Since int
}

// Table is one table as all backends have it.
type Table struct {
	Name    string
	Columns []Column
	Key     int // the first columns are its key
	Since   int // the generation that it came with
}

// TableOf finds a table by its name; nil for none.
func TableOf(name string) *Table {
	for _, t := range Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Check refuses a row that is none of the table.
func (t *Table) Check(row []Value) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("a row of %s has %d values in place of %d", t.Name, len(row), len(t.Columns))
	}
	for i := range row {
		c := &t.Columns[i]
		if row[i].Null && !c.Null {
			return fmt.Errorf("%s.%s is NULL", t.Name, c.Name)
		}
		if c.Kind == Bool && row[i].Int>>1 != 0 {
			return fmt.Errorf("%s.%s is neither true nor false", t.Name, c.Name)
		}
		if c.Fence && row[i].Int>>62 != 0 { // it could not be raised any more
			return fmt.Errorf("%s.%s is out of range", t.Name, c.Name)
		}
	}
	return nil
}
