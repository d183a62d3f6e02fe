package jsonschema

import (
	"strings"
	"testing"
)

const form = `{"type":"object","required":["name","age"],"additionalProperties":false,"properties":{
	"name":{"type":"string","minLength":1,"maxLength":100},"age":{"type":"integer","minimum":0,"maximum":150},
	"tags":{"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true},"email":{"type":"string","format":"email"}}}`

const filled = `{"name":"Ada","age":36,"tags":["a","c"],"email":"ada@example.org"}`

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile([]byte(form)); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkValidate(b *testing.B, schema, value string) {
	s, err := Compile([]byte(schema))
	if err != nil {
		b.Fatal(err)
	}
	v := []byte(value)
	b.SetBytes(int64(len(v)))
	b.ReportAllocs()
	for b.Loop() {
		if v := s.Validate(v); v != nil {
			b.Fatal(v)
		}
	}
}

func BenchmarkValidate(b *testing.B) { benchmarkValidate(b, form, filled) }

func BenchmarkValidateLarge(b *testing.B) {
	benchmarkValidate(b, `{"items":`+form+`}`, "["+strings.Repeat(filled+",", 10_000)+filled+"]")
}

func BenchmarkValidateParallel(b *testing.B) {
	s, err := Compile([]byte(form))
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if v := s.Validate([]byte(filled)); v != nil {
				b.Fatal(v)
			}
		}
	})
}
