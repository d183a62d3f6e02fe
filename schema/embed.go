package schema

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed v2/*.json
var files embed.FS

// Prefix is what the identifier of every schema of major 2 starts with; the name
// follows it.
const Prefix = "urn:fermata:schema:v2:"

// V2 returns the schema called name ("run-event") as JSON. The caller may keep
// and change the bytes.
func V2(name string) ([]byte, bool) {
	b, err := files.ReadFile("v2/" + name + ".json")
	return b, err == nil
}

// Names returns the names V2 knows, sorted.
func Names() []string {
	entries, err := files.ReadDir("v2")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names) // the folder is sorted by file name, where "-" comes before "."
	return names
}
