package flow

import (
	"fmt"
	"testing"
	"time"
	"strings"
	"bytes"
	"github.com/fermata-run/fermata/node"
	"context"
)

type pcat map[string]*node.Type
func (c pcat) Type(id string) (*node.Type, bool) { t, ok := c[id]; return t, ok }
func TestProbe(t *testing.T) {
	cat := pcat{"core.noop": {ID:"core.noop", Run: func(context.Context, *node.Input)(node.Result,error){return node.Done(nil),nil}}}
	def := func(nodes, edges string) []byte { return []byte(`{"id":"w","name":"w","version":"1","edges":[`+strings.TrimRight(edges,",\n")+`],"triggers":[],"variables":[],"metadata":{},"settings":{"maxLoopbackIterations":3},"nodes":[`+strings.TrimRight(nodes,",\n")+`]}`)}
	nd := func(id int, in string) string { return fmt.Sprintf(`{"id":"n%d","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{%s}},`+"\n", id, in)}
	run := func(name string, d []byte) {
		at := time.Now()
		w, err := Load(d, cat)
		n := 0
		if is, ok := err.(Issues); ok { n = len(is) } else if err != nil { fmt.Println(err) }
		l := time.Since(at)
		at = time.Now()
		_, err2 := Check(d, cat)
		fmt.Println(name, len(d), l, "check", time.Since(at), n, w != nil, err2==nil)
	}
	run("many nodes", def(strings.Repeat(nd(1,""), 20000), ""))
	run("missing", def(strings.Repeat("{},", 200000), ""))
	var nodes, edges bytes.Buffer
	for i := range 2000 { nodes.WriteString(nd(i, "")) }
	for i := range 10000 { fmt.Fprintf(&edges, `{"id":"e%d","sourceNodeId":"x","targetNodeId":"y"},`+"\n", i) }
	run("dangling", def(nodes.String(), edges.String()))
	edges.Reset()
	for i := range 1999 { fmt.Fprintf(&edges, `{"id":"e%d","sourceNodeId":"n%d","targetNodeId":"n%d"},`+"\n", i, i, i+1) }
	chain := edges.String()
	k := 0
	for i := range 2000 { for j := 1; j < 5 && i+j+1 < 2000; j++ { fmt.Fprintf(&edges, `{"id":"f%d","sourceNodeId":"n%d","targetNodeId":"n%d"},`+"\n", k, i, i+j+1); k++ } }
	nodes.Reset()
	for i := range 2000 { in := ""; if i > 10 { in = `"a":{"type":"connection","nodeId":"n0","outputKey":"x"},"b":{"type":"connection","nodeId":"n1","outputKey":"x"}` } ; nodes.WriteString(nd(i, in)) }
	run("dense", def(nodes.String(), edges.String()))
	run("later", def(strings.ReplaceAll(strings.ReplaceAll(nodes.String(), `"n0"`, `"n1999"`), `"id":"n1999","typeId"`, `"id":"n0","typeId"`), edges.String()))
	edges.Reset(); edges.WriteString(chain)
	for i := range 999 { fmt.Fprintf(&edges, `{"id":"b%d","sourceNodeId":"n%d","targetNodeId":"n%d"},`+"\n", i, 1999-i, i) }
	run("nested", def(nodes.String(), edges.String()))
	edges.Reset(); edges.WriteString(chain)
	for i := range 199 { fmt.Fprintf(&edges, `{"id":"b%d","sourceNodeId":"n%d","targetNodeId":"n%d"},`+"\n", i, 1900-i, i) }
	run("nested200", def(nodes.String(), edges.String()))
}
