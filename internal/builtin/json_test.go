package builtin

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestDecimal(t *testing.T) {
	same := [][]string{
		{"0", "-0", "0.0", "0e5", "-0.00e-3"},
		{"1", "1.0", "1e0", "10e-1", "0.1E1", "100E-2"},
		{"-12.5", "-125e-1", "-0.0125e3"},
		{"9007199254740993", "9007199254740993.0", "9007199254740993000e-3"},
		{"1e400", "10e399"},
		{"1e-400", "0.1e-399"},
	}
	for i, row := range same {
		for _, a := range row {
			for j, other := range same {
				for _, b := range other {
					if got := equal(json.RawMessage(a), json.RawMessage(b)); got != (i == j) {
						t.Errorf("%s = %s: %v", a, b, got)
					}
				}
			}
		}
	}
	if equal(json.RawMessage("9007199254740993"), json.RawMessage("9007199254740992")) {
		t.Error("numbers past 2^53 are rounded")
	}
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "1e3": 1000, "1000.0": 1000, "12.5e1": 125, "-3": -3,
		"999999999999999999": 999999999999999999,
	} {
		got, err := number{json.RawMessage(text)}.whole("n", 5, -10, 1e18)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"1.5", "1e-1", "1e400", "1e999999999", "1e99999999999999999999", "-11", "12345678901234567890",
		`"7"`, "true", "[]", "{}", "NaN",
	} {
		if got, err := (number{json.RawMessage(text)}).whole("n", 5, -10, 1e18); err == nil {
			t.Errorf("%s is %d", text, got)
		}
	}
	for _, text := range []string{"", "null"} {
		if got, err := (number{json.RawMessage(text)}).whole("n", 5, 6, 7); got != 5 || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2,null]}`, ` { "b" : [2.0, null], "a" : 1 } `, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`"\u00e9"`, `"é"`, true},
		{`"1"`, `1`, false},
		{`true`, `"true"`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`null`, ``, true},
		{`false`, `null`, false},
		{`{`, `{`, false},
		{`[]`, `{}`, false},
	} {
		if got := equal(json.RawMessage(c.a), json.RawMessage(c.b)); got != c.want {
			t.Errorf("%s = %s: %v", c.a, c.b, got)
		}
	}
}

func TestMembersKeepOrderAndBytes(t *testing.T) {
	o, err := members(json.RawMessage(` {"z": 1.10, "a": {"y":1,"x":2}, "ключ": "\u003c<", "z": 12345678901234567890 } `))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "object", o.raw(), `{"z":12345678901234567890,"a":{"y":1,"x":2},"ключ":"\u003c<"}`)
	for _, bad := range []string{``, `[]`, `null`, `"a"`, `{`, `{"a"`, `{"a":}`, `{"a":1`} {
		if _, err := members(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is an object", bad)
		}
	}
}

func TestQuote(t *testing.T) {
	sameJSON(t, "unicode", quote("<é\u2028\"\n𝄐>"), "\"<é\u2028\\\"\\n𝄐>\"")
	sameJSON(t, "invalid UTF-8", quote("a\xff"), "\"a\ufffd\"")
	sameJSON(t, "empty object", object(nil).raw(), "{}")
	sameJSON(t, "empty list", array(nil), "[]")
	sameJSON(t, "holes", array([]json.RawMessage{nil, json.RawMessage("1")}), "[null,1]")
}

func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `[]`: 1, `{"a":[{}]}`: 3, `["[[[[", "\"[", {}]`: 2, strings.Repeat("[", 500): 500,
	} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("%.20s: %d", text, got)
		}
	}
}

func TestMisfitNamesTheMember(t *testing.T) {
	var cfg approvalConfig
	for config, want := range map[string]string{
		`{"title":7}`:                      "config.title must be a string, not a number",
		`{"actions":"accept"}`:             "config.actions must be a list, not a string",
		`{"actions":[true]}`:               "config.actions must be a string, not true or false",
		`{"audience":[]}`:                  "config.audience must be an object, not a list",
		`{"overrideBypassesQuorum":"yes"}`: "config.overrideBypassesQuorum must be true or false, not a string",
		`{"audience":{"roles":{}}}`:        "config.audience.roles must be a list, not an object",
		`[]`:                               "config must be an object, not a list",
	} {
		cfg = approvalConfig{}
		err := settings(in(config), &cfg)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	err := bind(in(`{}`, "title", `{}`), &cfg)
	if err == nil || !strings.HasSuffix(err.Error(), "inputs.title must be a string, not an object") {
		t.Error(err)
	}
	if err := bind(in(`{"title":`), &cfg); err == nil {
		t.Error("a config that is no JSON was read")
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1.50e2", "12345678901234567890", "1E-3", "0.000", "1e309"} {
		f.Add(s, "1")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) || len(a)+len(b) > 40 {
			return
		}
		if kind(json.RawMessage(a)) != "a number" || kind(json.RawMessage(b)) != "a number" {
			return
		}
		x, okX := new(big.Rat).SetString(strings.TrimSpace(a))
		y, okY := new(big.Rat).SetString(strings.TrimSpace(b))
		if !okX || !okY {
			return // an exponent too large to be worked out
		}
		if got := equal(json.RawMessage(a), json.RawMessage(b)); got != (x.Cmp(y) == 0) {
			t.Errorf("%s = %s: %v", a, b, got)
		}
	})
}
