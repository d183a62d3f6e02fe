package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration file.
const maxFile = 1 << 20

type fileValue struct {
	text string
	line int
}

// readFile reads a file of settings. JSON is read as the YAML it also is.
func readFile(path string) (map[string]fileValue, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("config: the file %s has more than %d bytes", path, maxFile)
	}
	root, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("config: the file %s cannot be read: %w", path, err)
	}
	out := map[string]fileValue{}
	if root == nil {
		return out, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := member(out, path, root.Content[i], root.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parse returns the file's one mapping; nil for an empty file.
func parse(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one document")
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("it must hold names with values, such as listen: 127.0.0.1:7411")
	}
	return root, nil
}

// member takes one setting from a file. A name that nobody knows is a slip that
// must not pass unseen.
func member(into map[string]fileValue, path string, key, value *yaml.Node) error {
	at := fmt.Sprintf("(from the file %s:%d)", path, key.Line)
	s := lookup(key.Value)
	_, twice := into[key.Value]
	switch {
	case s == nil:
		return fmt.Errorf("%s: there is no such setting%s %s", key.Value, suggestion(key.Value), at)
	case s.EnvOnly:
		return fmt.Errorf("%s: is a secret and can be given by %s only %s", s.Name, s.Env(), at)
	case twice:
		return fmt.Errorf("%s: is set twice %s", s.Name, at)
	}
	text, err := textOf(s, value)
	if err != nil {
		return fmt.Errorf("%s: %w %s", s.Name, err, at)
	}
	if s.Path && text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(path), text)
	}
	if text != "" {
		into[s.Name] = fileValue{text, key.Line}
	}
	return nil
}

func textOf(s *Setting, v *yaml.Node) (string, error) {
	switch {
	case v.Kind == yaml.ScalarNode && v.Tag == "!!null":
		return "", nil
	case v.Kind == yaml.ScalarNode:
		return v.Value, nil
	case v.Kind == yaml.SequenceNode && s.Type == "list":
		parts := make([]string, len(v.Content))
		for i, c := range v.Content {
			if c.Kind != yaml.ScalarNode {
				return "", errors.New("must be a list of texts")
			}
			parts[i] = c.Value
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("must be a single value")
}

func lookup(name string) *Setting {
	for i := range settings {
		if settings[i].Name == name {
			return &settings[i]
		}
	}
	return nil
}

// suggestion helps with the commonest slip: another spelling of a known name.
func suggestion(name string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
	}
	for i := range settings {
		if plain(settings[i].Name) == plain(name) {
			return fmt.Sprintf("; it is written %q", settings[i].Name)
		}
	}
	return ""
}
