package cli

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/fermata-run/fermata/internal/flow"
)

// work is the file to run and its neighbours.
type work struct {
	file   string
	text   []byte
	head   head
	others []string // *.json files beside it
}

// readWork reads the file. What is wrong with it is said before a host is opened.
func (a *app) readWork(file string) (*work, error) {
	b, err := readDefinition(file)
	if err != nil {
		return nil, usageError{err}
	}
	if a.env.Catalog != nil {
		_, err = flow.Check(b, a.env.Catalog)
	} else if !json.Valid(b) {
		err = unreadable(b)
	}
	if err != nil {
		return nil, a.refused(file, err)
	}
	others, err := neighbours(file)
	if err != nil {
		return nil, err
	}
	return &work{file: file, text: b, head: headOf(b), others: others}, nil
}

// neighbours are the *.json files beside a file.
func neighbours(file string) ([]string, error) {
	list, err := folder(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	self, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range list {
		if info, err := os.Stat(f); err == nil && !os.SameFile(info, self) {
			out = append(out, f)
		}
	}
	return out, nil
}

// refused prints what is wrong with a definition.
func (a *app) refused(file string, err error) error {
	list := faults(file, err)
	if len(list) == 0 {
		return err
	}
	for _, f := range list {
		a.note("%s", f)
	}
	a.note("error: %s is not a valid workflow", file)
	return told{ExitFailed}
}
