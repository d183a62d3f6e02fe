package ids

import (
	"errors"
	"strings"
)

// Run identifies a run: the tenant that owns it and the opaque segment the host
// minted. The same shape serves every tenant-bound kind (interruptId,
// subscriptionId, deliveryId, effectId).
type Run struct {
	Tenant string
	Opaque string
}

// ErrGrammar says that a string is no tenant-bound id.
var ErrGrammar = errors.New("not a tenant-bound id: want <tenant>/<16 to 128 characters of A-Z a-z 0-9 . _ ~ ->")

// ParseRun parses the bound form tenant/opaque, as documents and bodies carry it.
func ParseRun(s string) (Run, error) {
	tenant, opaque, ok := strings.Cut(s, "/")
	if !ok || !ValidTenant(tenant) || !ValidOpaque(opaque) {
		return Run{}, ErrGrammar
	}
	return Run{tenant, opaque}, nil
}

// ReadRun reads a run's id that came in over a wire: tenant-bound, in either
// spelling, or bare if home, the tenant it stands in then, is not empty.
func ReadRun(raw, home string) (Run, error) {
	// This host mints no id with a ~, but another may have: such an id, percent-
	// encoded, is read as it came when it makes no sense as a projection.
	if s, err := Unproject(raw); err == nil {
		if id, err := ParseRun(s); err == nil {
			return id, nil
		}
	}
	if home != "" && ValidOpaque(raw) {
		return Run{home, raw}, nil
	}
	return ParseRun(raw)
}

// String is the bound form, tenant/opaque.
func (r Run) String() string { return r.Tenant + "/" + r.Opaque }

// IsZero reports whether r names nothing.
func (r Run) IsZero() bool { return r == Run{} }

// Segment is the id projected onto one path segment, as every link carries it.
func (r Run) Segment() string { return Project(r.String()) }

const hexUpper = "0123456789ABCDEF"

// Project encodes s as one path segment: each byte outside [A-Za-z0-9._-]
// becomes ~ and two uppercase hex digits (spec v2 identity.md §5).
func Project(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 4)
	for i := 0; i < len(s); i++ {
		if c := s[i]; unreserved(c) && c != '~' {
			b.WriteByte(c)
		} else {
			b.WriteByte('~')
			b.WriteByte(hexUpper[c>>4])
			b.WriteByte(hexUpper[c&15])
		}
	}
	return b.String()
}

// ErrProjection says that a segment holds a ~ without two hex digits.
var ErrProjection = errors.New("malformed ~ escape in id: want ~ and two uppercase hexadecimal digits")

// Unproject decodes one path segment, after percent-decoding. A segment without
// any ~ is returned as it is, so both spellings of a link (~2F and %2F) meet here.
func Unproject(s string) (string, error) {
	if !strings.Contains(s, "~") {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '~' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", ErrProjection
		}
		hi, lo := unhex(s[i+1]), unhex(s[i+2])
		if hi < 0 || lo < 0 {
			return "", ErrProjection
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
