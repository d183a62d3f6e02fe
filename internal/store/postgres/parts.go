package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxPartitions bounds the parts of a table: a statement that is about no one run
// looks into each.
const MaxPartitions = 256

// ErrPartitions: the tables of a database are there in other parts than is wanted.
var ErrPartitions = errors.New("the partitions of a database are decided when its tables are made")

// partable finds a table of a migration that can come in parts, and by which columns.
var partable = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \([^;]*?\n\); -- parts: ([a-z_, ]+)`)

// parted is a migration whose tables come in n parts each; zero leaves it alone.
func parted(text string, n int) string {
	if n == 0 {
		return text
	}
	return partable.ReplaceAllStringFunc(text, func(table string) string {
		m := partable.FindStringSubmatch(table)
		head, _, _ := strings.Cut(table, "; -- parts:")
		var b strings.Builder
		fmt.Fprintf(&b, "%s PARTITION BY HASH (%s);", head, m[2])
		for i := range n {
			fmt.Fprintf(&b, "\nCREATE TABLE %s_p%d PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d);", m[1], i, m[1], n, i)
		}
		return b.String()
	})
}
