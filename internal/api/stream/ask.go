package stream

import (
	"math"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/problem"
)

// Query are the parameters of a stream, for a route table.
var Query = []api.Param{
	{Name: "streamMode", Description: "What to send.", Schema: `{"type":"string","default":"updates","pattern":"^(values|(updates|messages|debug)(,(updates|messages|debug))*)$"}`},
	{Name: "bufferMs", Description: "Gather events for this long and send them as one batch.", Schema: `{"type":"integer","minimum":0,"maximum":5000}`},
}

// Resume is the header of a subscriber who comes back.
var Resume = api.Param{Name: "Last-Event-ID", Schema: `{"type":"string"}`, Description: "Resume behind this sequence."}

// Ask is what a request wants to be shown.
type Ask struct {
	Mode   sse.Mode
	Given  bool // the mode was named
	Buffer time.Duration
}

// Read reads what a request wants. It fails before anything of the run is looked at.
func Read(r *api.Request) (Ask, error) {
	m, given, err := r.QueryOne("streamMode")
	if err != nil {
		return Ask{}, err
	}
	mode, err := sse.ParseMode(m, given)
	if err != nil {
		return Ask{}, err
	}
	buffer, err := r.QueryInt("bufferMs", 0, 5000, 0)
	if err != nil {
		return Ask{}, err
	}
	return Ask{Mode: mode, Given: given, Buffer: time.Duration(buffer) * time.Millisecond}, nil
}

// LastEventID reads the cursor of a resumed stream. It is exclusive, and may lie
// beyond the end of the log (spec v2 events.md §SSE frames).
func LastEventID(r *api.Request) (after int64, resumed bool, err error) {
	v := r.Header.Get("Last-Event-ID")
	if v == "" {
		return -1, false, nil
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return 0, false, problem.Invalid("Last-Event-ID", "is not the sequence of an event")
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n > beyondAnyLog {
		n = beyondAnyLog // digits alone: so large a number that no log comes there
	}
	return n, true, nil
}

// beyondAnyLog leaves room to count on.
const beyondAnyLog = math.MaxInt64 - 1
