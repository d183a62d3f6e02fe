package expr

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// small is the scope of an ordinary edge.
var small = Values{
	"variables": jsontext.Value(`{"customer":{"name":"Ada","tier":"gold"},"order":{"id":9007199254740993,"total":129.5,` +
		`"items":[{"sku":"a","qty":1},{"sku":"b","qty":2}]},"limit":100}`),
	"outputs": jsontext.Value(`{"score":3.5,"approved":true,"status":"done"}`),
}

// large is a scope of a megabyte, most of which no expression below touches.
var large = Values{
	"variables": jsontext.Value(`{"pages":[` + strings.Repeat(`{"text":"`+strings.Repeat("lorem ipsum ", 80)+`"},`, 1000) +
		`{}],"order":{"id":1}}`),
}

func benchmark(b *testing.B, s Scope, source string) {
	b.Helper()
	p, err := Compile(source)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPath(b *testing.B)             { benchmark(b, small, `variables.order.id`) }
func BenchmarkPathDeep(b *testing.B)         { benchmark(b, small, `variables.order.items[1].sku`) }
func BenchmarkPathPastMegabyte(b *testing.B) { benchmark(b, large, `variables.order.id`) }
func BenchmarkComparison(b *testing.B)       { benchmark(b, small, `outputs.score > 3`) }
func BenchmarkConjunction(b *testing.B) {
	benchmark(b, small, `outputs.approved && variables.order.total >= variables.limit`)
}
func BenchmarkMacro(b *testing.B) {
	benchmark(b, small, `variables.order.items.exists(i, i.sku == "b")`)
}
func BenchmarkTransform(b *testing.B) {
	benchmark(b, small, `{"id": variables.order.id, "skus": variables.order.items.map(i, i.sku)}`)
}
func BenchmarkPastMegabyte(b *testing.B) { benchmark(b, large, `variables.order.id == 1`) }

func BenchmarkCondition(b *testing.B) {
	t, err := Condition{Type: "equals", Left: "status", Right: jsontext.Value(`"done"`)}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := t.Eval(small, small["outputs"]); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkCompilePath(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(`variables.order.items[1].sku`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(`outputs.approved && variables.order.total >= variables.limit`); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEngine is what the first source beyond a path costs, and what stays
// in memory for it.
func BenchmarkEngine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newEngine(); err != nil {
			b.Fatal(err)
		}
	}
}
