package kill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// voter is somebody with a key of their own.
type voter struct{ id, key string }

// ballots is what voters were told, across all of a host's lives.
type ballots struct {
	mu    sync.Mutex
	runs  map[string]string          // workflow, by run
	taken map[string]map[string]bool // acknowledged acceptances: run, then subject
}

func (b *ballots) took(run, who string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken[run] == nil {
		b.taken[run] = map[string]bool{}
	}
	b.taken[run][who] = true
}

// TestQuorumsSurvive kills the host while several people answer gates that need
// three of the group, some with a deadline that may come first. No acknowledged vote
// is lost, none counts twice, each gate is decided once, and a deadline that passed
// while nobody was there is kept afterwards.
func TestQuorumsSurvive(t *testing.T) {
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 11))
	h := newHost(t)
	h.start()
	board := object{"title": "?", "requiredApprovals": 3, "rejectionPolicy": "majority", "approverGroupRefs": []string{"board"}}
	with := func(ms int) object {
		c := object{"timeoutMs": ms}
		for k, v := range board {
			c[k] = v
		}
		return c
	}
	for id, c := range map[string]object{"open": board, "race": with(120), "late": with(400)} {
		h.register(flow(id, []any{step("ok", "core.approvalGate", c)}, nil))
	}
	var voters []voter
	for i := range 5 {
		voters = append(voters, h.voter(fmt.Sprint("v", i), "board"))
	}
	stranger := h.voter("stranger", "sales")
	b := &ballots{runs: map[string]string{}, taken: map[string]map[string]bool{}}
	for range 4 {
		h.voteUntilKilled(b, append(voters, stranger), 60+rng.IntN(250))
		if rng.IntN(2) == 0 {
			time.Sleep(150 * time.Millisecond) // deadlines pass while nobody is there
		}
		h.start()
	}
	h.checkBallots(b, voters, stranger)
}

// voter makes a key of somebody in a group.
func (h *host) voter(name, group string) voter {
	h.t.Helper()
	r, err := h.call("POST", "/host/fermata/keys", object{"name": name, "scopes": []string{"approvals:respond"}, "groups": []string{group}})
	var made struct{ Key, SubjectID string }
	if err != nil || r.status != 201 || json.Unmarshal(r.body, &made) != nil {
		h.t.Fatalf("a key: %v %v", r, err)
	}
	return voter{made.SubjectID, made.Key}
}

// voteUntilKilled starts runs and lets everybody vote, and pulls the plug after
// enough votes.
func (h *host) voteUntilKilled(b *ballots, voters []voter, enough int) {
	var votes atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				workflow := []string{"open", "race", "open", "late"}[(c+n)%4]
				id, err := h.create(workflow, fmt.Sprint(c, "-", n))
				if err != nil {
					return
				}
				b.mu.Lock()
				b.runs[id] = workflow
				b.mu.Unlock()
				var all sync.WaitGroup
				for i, v := range voters {
					if workflow == "late" && i > 1 && i < len(voters)-1 {
						continue // never enough
					}
					all.Go(func() {
						if h.vote(b, v, id) && votes.Add(1) == int64(enough) {
							close(done)
						}
					})
				}
				all.Wait()
			}
		})
	}
	select {
	case <-done:
	case <-time.After(patience):
		h.t.Errorf("%d of %d votes in %v", votes.Load(), enough, patience)
	}
	h.kill()
	wg.Wait()
}

// vote accepts twice, as somebody who is not sure that he was heard. It reports
// whether the host answered.
func (h *host) vote(b *ballots, v voter, run string) bool {
	for range 2 {
		r, err := h.callAs(v, "/runs/"+segment(run)+"/interrupts/ok", object{"resumeValue": object{"action": "accept"}})
		switch {
		case err != nil:
			return false
		case r.status == 200:
			b.took(run, v.id)
		case r.status != 409 && r.status != 403:
			h.t.Errorf("a vote on %s: %v", run, r)
		}
	}
	return true
}

func (h *host) callAs(v voter, path string, body any) (reply, error) {
	h.mu.Lock()
	url := h.url
	h.mu.Unlock()
	if url == "" {
		return reply{}, errDown
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequest("POST", url+path, bytes.NewReader(raw))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+v.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := h.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, text}, err
}

// checkBallots holds every run against what the voters were told.
func (h *host) checkBallots(b *ballots, voters []voter, stranger voter) {
	t := h.t
	decided := map[string]int{}
	for id, workflow := range b.runs {
		if len(b.taken[id]) >= 3 || workflow != "open" {
			h.await(id) // by its quorum or by its deadline
		}
		status := h.snapshot(id).Status
		c := h.countVotes(id)
		decided[workflow+" "+status+" "+c.by]++
		for who := range b.taken[id] {
			if !c.voters[who] {
				t.Errorf("run %s: the vote of %s was acknowledged and is not in the log", id, who)
			}
		}
		if c.voters[stranger.id] {
			t.Errorf("run %s: somebody outside the group voted", id)
		}
		switch {
		case status == "completed" && (c.resolved != 1 || c.by != "accept" || len(c.voters) != 3):
			t.Errorf("run %s (%s) completed with %d votes and %d decisions by %q", id, workflow, len(c.voters), c.resolved, c.by)
		case status == "failed" && (c.resolved != 1 || c.by != "timeout" || workflow == "open" || len(c.voters) > 2):
			t.Errorf("run %s (%s) failed with %d votes and %d decisions by %q", id, workflow, len(c.voters), c.resolved, c.by)
		case status == "waiting-approval" && (workflow != "open" || c.resolved != 0 || len(c.voters) > 2):
			t.Errorf("run %s (%s) waits with %d votes and %d decisions", id, workflow, len(c.voters), c.resolved)
		case status != "completed" && status != "failed" && status != "waiting-approval":
			t.Errorf("run %s is %s", id, status)
		}
		if status == "waiting-approval" {
			h.finishVote(b, voters, id)
		}
	}
	if decided["open completed accept"] == 0 || decided["late failed timeout"] == 0 {
		t.Errorf("the load decided too little: %v", decided)
	}
	t.Logf("%d runs: %v", len(b.runs), decided)
}

type counted struct {
	voters   map[string]bool // who accepted, by the log
	resolved int
	by       string // the action of the decision
}

func (h *host) countVotes(id string) counted {
	h.t.Helper()
	c := counted{voters: map[string]bool{}}
	docs, _ := h.log(id)
	for _, doc := range docs {
		var e struct {
			Type    string
			Payload struct {
				Action     string
				ResolvedBy struct{ SubjectID string }
			}
		}
		if err := json.Unmarshal(doc, &e); err != nil {
			h.t.Fatal(err)
		}
		switch e.Type {
		case "interrupt.resolved":
			c.resolved++
			c.by = e.Payload.Action
			fallthrough
		case "approval.received":
			if e.Payload.Action == "accept" {
				c.voters[e.Payload.ResolvedBy.SubjectID] = true
			}
		}
	}
	return c
}

// finishVote lets a gate that still waits have the votes it lacks.
func (h *host) finishVote(b *ballots, voters []voter, id string) {
	for _, v := range voters {
		if !h.vote(b, v, id) {
			h.t.Fatalf("nobody answers for %s", id)
		}
	}
	if s := h.await(id); s.Status != "completed" {
		h.t.Errorf("run %s is %s after everybody has voted", id, s.Status)
	}
	if c := h.countVotes(id); c.resolved != 1 || len(c.voters) != 3 {
		h.t.Errorf("run %s: %d votes and %d decisions", id, len(c.voters), c.resolved)
	}
}
