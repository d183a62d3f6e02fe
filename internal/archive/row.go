package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/fermata-run/fermata/internal/store"
)

// Marks in front of what follows.
const (
	isNull  = 0
	isInt   = 1
	isBytes = 2

	oneMore = 'R' // a row
	noMore  = 'E' // the end of a table
)

// maxRow bounds the values of a row together. A segment of a log may hold several
// documents of the largest size.
var maxRow int64 = 1 << 30 // lower in tests

// fits says whether a row can be read again once it is written.
func fits(row []store.Value) bool {
	left := maxRow
	for i := range row {
		left -= int64(len(row[i].Bytes))
	}
	return left >= 0
}

// appendRow encodes a row. With compare, values that are not compared are 0.
func appendRow(b []byte, columns []store.Column, row []store.Value, compare bool) []byte {
	for i, v := range row {
		switch {
		case v.Null:
			b = append(b, isNull)
		case columns[i].Kind.Whole():
			if compare && columns[i].Fence {
				v.Int = 0
			}
			b = binary.AppendVarint(append(b, isInt), v.Int)
		default:
			b = binary.AppendUvarint(append(b, isBytes), uint64(len(v.Bytes)))
			b = append(b, v.Bytes...)
		}
	}
	return b
}

// readRow decodes a row into out. The values are its own.
func readRow(r *bufio.Reader, columns []store.Column, out []store.Value) error {
	left := maxRow
	for i := range columns {
		mark, err := r.ReadByte()
		if err != nil {
			return err
		}
		whole := columns[i].Kind.Whole()
		out[i] = store.Value{}
		switch {
		case mark == isNull:
			out[i].Null = true
		case mark == isInt && whole:
			out[i].Int, err = binary.ReadVarint(r)
		case mark == isBytes && !whole:
			out[i].Bytes, err = readBytes(r, left)
			left -= int64(len(out[i].Bytes))
		default:
			err = fmt.Errorf("a value of %s is of another kind", columns[i].Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readBytes takes no more memory than there are bytes, whatever a length says.
func readBytes(r *bufio.Reader, most int64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > uint64(most) {
		return nil, errors.New("a row is too large")
	}
	if n <= 64<<10 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Sum is what a table holds.
type Sum struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// summer sums a table up as it goes by.
type summer struct {
	columns []store.Column
	compare bool // two stores: what is not compared is 0
	rows    int64
	hash    hash.Hash
	buf     []byte
}

func newSummer(columns []store.Column, compare bool) *summer {
	return &summer{columns: columns, compare: compare, hash: sha256.New()}
}

func (s *summer) add(row []store.Value) {
	s.buf = appendRow(s.buf[:0], s.columns, row, s.compare)
	s.hash.Write(s.buf) //nolint:errcheck // a hash takes everything
	s.rows++
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
}

func (s *summer) sum(table string) Sum {
	return Sum{Table: table, Rows: s.rows, SHA256: hex.EncodeToString(s.hash.Sum(nil))}
}

// summed sums up all tables of a store as its rows go by, in order.
type summed struct {
	sums map[string]*summer
}

func newSummed() *summed {
	s := &summed{sums: map[string]*summer{}}
	for _, t := range store.Tables {
		s.sums[t.Name] = newSummer(t.Columns, true)
	}
	return s
}

func (s *summed) visit(t *store.Table, row []store.Value) error {
	s.sums[t.Name].add(row)
	return nil
}

func (s *summed) list() (out []Sum) {
	for _, t := range store.Tables {
		out = append(out, s.sums[t.Name].sum(t.Name))
	}
	return out
}

// differ says in which table two stores are not the same.
func differ(want, got []Sum) error {
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("table %s is not what it should be: %d rows with the digest %.12s in place of %d with %.12s",
				want[i].Table, got[i].Rows, got[i].SHA256, want[i].Rows, want[i].SHA256)
		}
	}
	return nil
}
