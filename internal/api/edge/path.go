package edge

import (
	"net/url"
	"strings"

	"github.com/fermata-run/fermata/internal/problem"
)

// checkPath refuses a path that one reader takes for another path than the next: a
// proxy that authorizes by path and this host would not speak of the same thing.
// An encoded slash is none of these: ids of runs hold one. An empty segment is no
// operation's, and no id holds a control character or a backslash: the table and
// the grammars of ids refuse them.
func checkPath(escaped string) *problem.Error {
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return problem.Invalid("path", "is badly encoded")
	}
	if !strings.Contains(plain, "/.") {
		return nil // nearly all of them
	}
	for part := range strings.SplitSeq(plain, "/") {
		if part == "." || part == ".." {
			return problem.Invalid("path", "holds a dot segment")
		}
	}
	return nil
}
