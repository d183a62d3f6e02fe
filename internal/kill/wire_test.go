package kill

import (
	"encoding/json"
	"strconv"
	"time"
)

// The parts of the wire's documents that the tests look at.
type (
	snapshot struct {
		RunID      string               `json:"runId"`
		WorkflowID string               `json:"workflowId"`
		Status     string               `json:"status"`
		Variables  map[string]any       `json:"variables"`
		NodeStates map[string]nodeState `json:"nodeStates"`
	}
	nodeState struct {
		Status   string `json:"status"`
		WakesAt  string `json:"wakesAt"`
		Children []struct {
			RunID string `json:"runId"`
		} `json:"children"`
	}
	page struct {
		Events       []json.RawMessage `json:"events"`
		LastSequence int64             `json:"lastSequence"`
		Status       string            `json:"status"`
		IsTerminal   bool              `json:"isTerminal"`
	}
	event struct {
		RunID    string `json:"runId"`
		Sequence int64  `json:"sequence"`
		Type     string `json:"type"`
		NodeID   string `json:"nodeId"`
		Payload  struct {
			Attempt     int    `json:"attempt"`
			InterruptID string `json:"interruptId"`
		} `json:"payload"`
	}
	interrupt struct {
		InterruptID string `json:"interruptId"`
		RunID       string `json:"runId"`
		NodeID      string `json:"nodeId"`
	}
)

func terminal(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// tag is the mark a driver gave the run as an input.
func (s *snapshot) tag() string {
	t, _ := s.Variables["tag"].(string)
	return t
}

func (h *host) snapshot(id string) snapshot {
	h.t.Helper()
	var s snapshot
	h.get("/runs/"+segment(id), &s)
	return s
}

// await waits until a run has ended, as long as there is hope.
func (h *host) await(id string) snapshot {
	h.t.Helper()
	s := h.snapshot(id)
	for deadline := time.Now().Add(patience); !terminal(s.Status) && time.Now().Before(deadline); s = h.snapshot(id) {
		time.Sleep(time.Millisecond)
	}
	return s
}

// runs lists every run, children included, or those in one status.
func (h *host) runs(status string) []snapshot {
	h.t.Helper()
	query := "limit=200"
	if status != "" {
		query += "&status=" + status
	}
	return list[snapshot](h, "/runs", query, "runs")
}

// inbox lists every open interrupt.
func (h *host) inbox() []interrupt {
	h.t.Helper()
	return list[interrupt](h, "/host/fermata/interrupts", "limit=200", "interrupts")
}

func list[T any](h *host, path, query, member string) []T {
	h.t.Helper()
	var out []T
	for cursor := ""; ; {
		var p map[string]json.RawMessage
		h.get(path+"?"+query+cursor, &p)
		var some []T
		if err := json.Unmarshal(p[member], &some); err != nil {
			h.t.Fatalf("%s: %v", path, err)
		}
		out = append(out, some...)
		next, err := strconv.Unquote(string(p["nextCursor"]))
		if err != nil {
			return out
		}
		cursor = "&cursor=" + next
	}
}

// log reads the whole log of a run that has ended.
func (h *host) log(id string) (docs []json.RawMessage, status string) {
	h.t.Helper()
	for query := "?timeout=1"; ; {
		var p page
		h.get("/runs/"+segment(id)+"/events/poll"+query, &p)
		docs = append(docs, p.Events...)
		if p.IsTerminal || len(p.Events) == 0 {
			return docs, p.Status
		}
		query = "?timeout=1&afterSequence=" + strconv.Itoa(len(docs)-1)
	}
}
