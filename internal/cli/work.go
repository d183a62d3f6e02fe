package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// knows makes sure that every input is a variable of the workflow, and every
// answer is for a node of it or of one beside it. A slip in a name would go
// unnoticed: the run would use a default, or wait for the answer for ever.
func (w *work) knows(inputs json.RawMessage, answers map[string]string) error {
	var in map[string]json.RawMessage
	if inputs != nil {
		if err := json.Unmarshal(inputs, &in); err != nil {
			return err
		}
	}
	var vars []string
	for _, v := range w.head.Variables {
		vars = append(vars, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(vars, name) {
			return usage("input %q: the workflow has no such variable%s", name, listed("it has", vars))
		}
	}
	if len(answers) == 0 {
		return nil
	}
	nodes := slices.Sorted(maps.Keys(w.head.names()))
	for _, f := range w.others {
		if b, err := readDefinition(f); err == nil {
			nodes = append(nodes, slices.Sorted(maps.Keys(headOf(b).names()))...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if !slices.Contains(nodes, name) {
			return usage("--answer %s: neither the workflow nor one beside it has such a node%s", name, listed("there are", nodes))
		}
	}
	return nil
}

// listed says what there is, if it is not too much.
func listed(what string, names []string) string {
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return "; " + what + " " + strings.Join(names, ", ")
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
