package ids

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"time"
)

// alphabet is Crockford's base 32 in lower case: it sorts as its values do, and
// holds no ~, which a host must never mint.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// Minter makes opaque segments that sort by time of minting: 48 bits of
// milliseconds, then 80 random bits that count up within one millisecond. The
// order is what makes "newest first" an index scan. Safe for concurrent use.
type Minter struct {
	mu   sync.Mutex
	last int64
	hi   uint16
	lo   uint64
}

// Next mints a segment of 26 characters for time t.
func (m *Minter) Next(t time.Time) string {
	m.mu.Lock()
	ms := t.UnixMilli()
	if ms > m.last {
		m.last = ms
		var r [10]byte
		rand.Read(r[:])
		m.hi, m.lo = binary.BigEndian.Uint16(r[:2])&0x7fff, binary.BigEndian.Uint64(r[2:])
	} else {
		// The clock stood still or went back: stay on the last millisecond and
		// count, so that order never reverses.
		if m.lo++; m.lo == 0 {
			m.hi++
		}
	}
	ms, hi, lo := m.last, m.hi, m.lo
	m.mu.Unlock()
	return encode(ms, hi, lo)
}

// Derive makes a segment that is a pure function of its time and parts: the
// same child of the same node visit gets the same id however often the step
// that creates it is repeated after a crash.
func Derive(t time.Time, parts ...string) string {
	sum := digest(parts...)
	return encode(t.UnixMilli(), binary.BigEndian.Uint16(sum[:2]), binary.BigEndian.Uint64(sum[2:10]))
}

func encode(ms int64, hi uint16, lo uint64) string {
	var raw [16]byte
	raw[0], raw[1] = byte(ms>>40), byte(ms>>32)
	binary.BigEndian.PutUint32(raw[2:6], uint32(ms))
	binary.BigEndian.PutUint16(raw[6:8], hi)
	binary.BigEndian.PutUint64(raw[8:], lo)
	// 128 bits as 26 digits of 5 bits; the first digit holds the top 3 bits.
	var out [26]byte
	out[0] = alphabet[raw[0]>>5]
	bit := 3
	for i := 1; i < 26; i++ {
		byteAt, off := bit/8, bit%8
		v := uint16(raw[byteAt]) << 8
		if byteAt+1 < 16 {
			v |= uint16(raw[byteAt+1])
		}
		out[i] = alphabet[(v>>(11-off))&31]
		bit += 5
	}
	return string(out[:])
}

// timeDigits is how many digits of an id hold the time it was minted at.
const timeDigits = 10

// Event is the id of the event with the given sequence in a run: unique because
// the run's opaque segment is, and needing no storage of its own.
func Event(run Run, seq int64) string {
	return run.Opaque + "-" + strconv.FormatInt(seq, 36)
}

// Effect derives the id of an effect from everything that makes up its identity:
// the same parts are the same effect, at any time and of any run.
func Effect(tenant string, parts ...string) Run {
	return Run{Tenant: tenant, Opaque: digits(digest(append([]string{"effect", tenant}, parts...)...))}
}

// digest hashes parts such that no two lists of parts are taken for each other.
func digest(parts ...string) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p))))
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// digits writes 130 bits of a digest.
func digits(sum []byte) string {
	out := make([]byte, 26)
	for i := range out {
		out[i] = alphabet[sum[i]&31]
	}
	return string(out)
}

// Interrupt derives the id of an interrupt from everything that tells it from
// another: run, node, visit and ordinal within the visit. It begins with the time
// at which the run was minted, so that a store's index of interrupts grows at its
// end as that of runs does.
func Interrupt(run Run, nodeID string, visit, ordinal int) Run {
	out := digits(digest(run.Tenant, run.Opaque, nodeID, strconv.Itoa(visit), strconv.Itoa(ordinal)))
	if len(run.Opaque) > timeDigits && !strings.Contains(run.Opaque[:timeDigits], "~") {
		out = run.Opaque[:timeDigits] + out[timeDigits:]
	}
	return Run{Tenant: run.Tenant, Opaque: out}
}
