package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/flow"
)

// maxDefinition bounds a file that is read as a workflow definition.
const maxDefinition = 64 << 20

// definitions lists the files that arguments name: a file stands for itself, a
// folder for the *.json files right in it, in the order of their names.
func definitions(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, usageError{err}
		}
		if !info.IsDir() {
			out = append(out, arg)
			continue
		}
		list, err := folder(arg)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, usage("there is no *.json file in %s", arg)
		}
		out = append(out, list...)
	}
	return out, nil
}

func folder(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") && !e.IsDir() {
			out = append(out, filepath.Join(dir, name))
		}
	}
	sort.Strings(out)
	return out, nil
}

func readDefinition(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, path)
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxDefinition+1))
	if err == nil && len(b) > maxDefinition {
		err = fmt.Errorf("%s has more than %d MiB", name, maxDefinition>>20)
	}
	return b, err
}

// input reads a file, or the standard input for a dash.
func (a *app) input(path string) ([]byte, error) {
	if path == "-" {
		return readLimited(a.env.Stdin, "the standard input")
	}
	b, err := readDefinition(path)
	if err != nil {
		return nil, usageError{err}
	}
	return b, nil
}

// faults lists what an error says is wrong with a definition, one line each, as
// file:line: field: message. It is empty for errors that are not about one.
func faults(path string, err error) []string {
	var local flow.Issues
	var remote *client.Error
	var list []client.Issue
	switch {
	case errors.As(err, &local):
		for _, i := range local {
			list = append(list, client.Issue{Field: i.Field, Line: i.Line, Message: i.Message, RequiredCapability: i.Capability})
		}
	case errors.As(err, &remote):
		if list = remote.Issues(); len(list) == 0 && (remote.Status == 400 || remote.Status == 409 || remote.Status == 413 || remote.Status == 422) {
			list = []client.Issue{{Field: remote.Field(), Message: remote.Message}}
		}
	}
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = at(path, x)
	}
	return out
}

// at writes one issue the way compilers do, so that editors can jump to it.
func at(path string, i client.Issue) string {
	s := path
	if i.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, i.Line)
	}
	if i.Field != "" {
		s += ": " + plain(i.Field)
	}
	return s + ": " + plain(i.Message)
}

// head is what the command line itself looks at in a definition.
type head struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Version   string     `json:"version"`
	Variables []variable `json:"variables"`
	Nodes     []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"nodes"`
}

type variable struct {
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Required bool            `json:"required"`
	Default  json.RawMessage `json:"defaultValue"`
}

// headOf reads a definition loosely: what is wrong with it is not said here.
func headOf(definition []byte) head {
	var h head
	_ = json.Unmarshal(definition, &h)
	return h
}

// names are the names of a workflow's nodes by id.
func (h head) names() map[string]string {
	m := make(map[string]string, len(h.Nodes))
	for _, n := range h.Nodes {
		m[n.ID] = n.Name
	}
	return m
}
