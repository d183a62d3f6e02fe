package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// maxEndpoint bounds the name of an endpoint, in bytes; a longer one is hashed.
const maxEndpoint = 512

// Endpoint names an operation together with the resources in its path, whichever
// way their ids were spelled (spec v2 idempotency.md §Layer 1, record key).
func (r *Request) Endpoint() string {
	name := r.Route.ID
	if r.Route.Wire != "" {
		name = r.Route.Wire + " " + name
	}
	for _, p := range slices.Sorted(maps.Keys(r.Params)) {
		v := r.resource(p)
		if p == credential || !named(v) {
			sum := sha256.Sum256([]byte(v))
			v = hex.EncodeToString(sum[:])
		}
		name += " " + url.PathEscape(v)
	}
	if len(name) <= maxEndpoint {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return r.Route.ID + " " + hex.EncodeToString(sum[:])
}

// named reports whether a path parameter looks like the name of something. What does not
// may be anything, a secret in the wrong place too, and is not kept as it came.
func named(v string) bool {
	if _, err := ids.ParseRun(v); err == nil {
		return true
	}
	return ids.ValidAuthored(v)
}

// credential is the path parameter that must not be kept: who has it may act.
const credential = "token"

// resource is a path parameter in one spelling.
func (r *Request) resource(name string) string {
	if id, err := r.RunID(name); err == nil {
		return id.String()
	}
	return r.Params[name]
}

// Digest tells requests apart that differ in more than how they are written
// (spec v2 idempotency.md §Layer 1, digest mismatch): by method, path, query,
// body, and whatever else is given.
func (r *Request) Digest(body []byte, also ...string) (sum [sha256.Size]byte) {
	h := digester{sha256.New()}
	h.add('m', r.Method, r.Route.ID)
	for _, p := range slices.Sorted(maps.Keys(r.Params)) {
		h.add('p', p, r.resource(p))
	}
	if q, err := url.ParseQuery(r.URL.RawQuery); err == nil {
		h.add('q', q.Encode())
	} else {
		h.add('Q', r.URL.RawQuery)
	}
	h.add('a', also...)
	h.body(body)
	return [sha256.Size]byte(h.Sum(nil))
}

// digester hashes values so that no two sequences of them look the same.
type digester struct{ hash.Hash }

func (h digester) add(kind byte, values ...string) {
	b := append(make([]byte, 0, 64), kind)
	b = strconv.AppendInt(b, int64(len(values)), 10)
	for _, v := range values {
		b = strconv.AppendInt(append(b, ' '), int64(len(v)), 10)
		b = append(append(b, ':'), v...)
	}
	h.Write(b)
}

// body hashes a JSON text by what it says: white space, the order of members,
// escapes and the spelling of a number do not count; its value does, exactly. A
// text that is no JSON counts as its bytes.
func (h digester) body(body []byte) {
	v := jsontext.Value(bytes.Clone(body))
	if event.Depth(body) > MaxDepth || v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(true)) != nil {
		h.add('B', string(body))
		return
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return // the end: the text has been parsed before
		}
		switch k := tok.Kind(); k {
		case '0':
			h.add('0', number(tok.String()))
		case '"':
			h.add('"', tok.String())
		default:
			h.add(byte(k))
		}
	}
}

// number writes a JSON number as digits and a power of ten, without rounding, so
// that equal numbers look the same.
func number(s string) string {
	digits, exp, _ := strings.Cut(strings.ToLower(s), "e")
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole, frac, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return "0"
	}
	power := int64(0)
	if exp != "" {
		var err error
		if power, err = strconv.ParseInt(exp, 10, 62); err != nil {
			return strings.ToLower(s) // beyond all reason: its spelling counts
		}
	}
	power -= int64(len(frac))
	short := strings.TrimRight(digits, "0")
	power += int64(len(digits) - len(short))
	return sign + short + "e" + strconv.FormatInt(power, 10)
}
