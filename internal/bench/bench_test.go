package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestCountEvents(t *testing.T) {
	long := strings.Repeat("x", 40_000) + "\ndata"
	stream := ": open\n\nid: 0\nevent: a\ndata: {}\n\nid: 1\nevent: b\ndata: " + long + ": no line of its own\n\n: alive\n\ndata: []\n\n"
	stream = strings.Replace(stream, "\ndata: no", " data: no", 1)
	n, size, err := countEvents(strings.NewReader(stream))
	if n != 3 || size != int64(len(stream)) || err != nil {
		t.Errorf("%d events in %d of %d bytes: %v", n, size, len(stream), err)
	}
}

func TestMember(t *testing.T) {
	doc := []byte(`{"runId":"a/b","status":"completed","n":{"status":"x"}}`)
	if got := string(member(doc, "status")); got != "completed" {
		t.Errorf("status %q", got)
	}
	if got := member(doc, "none"); got != nil {
		t.Errorf("none %q", got)
	}
}

func TestLatencies(t *testing.T) {
	var l latencies
	for i := range 100 {
		l = append(l, time.Duration(100-i)*time.Millisecond)
	}
	if a, b, c := l.at(.5), l.at(.99), l.at(1); a != 51 || b != 100 || c != 100 {
		t.Errorf("p50 %v p99 %v p100 %v", a, b, c)
	}
	if v := (latencies)(nil).at(.5); v != 0 {
		t.Errorf("nothing has the median %v", v)
	}
}

func TestReport(t *testing.T) {
	r := Report{At: time.Unix(0, 0).UTC(), progress: io.Discard}
	r.add("g", "with a floor", 50, "/s", 100)
	r.add("g", "without", 3.14159, "ms", 0)
	var table, doc bytes.Buffer
	r.Table(&table)
	if err := r.JSON(&doc); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with a floor", "0.50", "3.142"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	var back Report
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || len(back.Rows) != 2 || math.Abs(back.Rows[0].Ratio-.5) > 1e-9 {
		t.Errorf("%v\n%s", err, doc.String())
	}
}

// TestFloor: the floor writes what it says, in commits that clients share.
func TestFloor(t *testing.T) {
	s := &segment{events: 4, body: bytes.Repeat([]byte("b"), 1300), owner: []byte("{}"), id: strings.Repeat("0", 26), snapshot: []byte(`{"status":"completed"}`)}
	open := func() (floor, error) { return openFloor(t.TempDir() + "/floor") }
	got, err := commitFloor(open, s, 8, 50*time.Millisecond)
	if err != nil || len(got.latency) == 0 || got.transactions == 0 || got.transactions > len(got.latency) {
		t.Errorf("%d runs in %d transactions: %v", len(got.latency), got.transactions, err)
	}
	rate, err := httpFloor(open, s, 4, 50*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Errorf("%v runs/s over HTTP: %v", rate, err)
	}
}

// TestHost drives a host within the test through everything the benchmark asks
// of one, in small.
func TestHost(t *testing.T) {
	addr := inProcess(t)
	got, err := driveAll([]string{addr}, createBody("five", ""), 4, 30*time.Millisecond)
	if err != nil || got.runs < 4 || len(got.create) != got.runs || len(got.complete) != got.runs {
		t.Fatalf("%d runs: %v", got.runs, err)
	}
	c, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path, err := c.create(createBody("burst", `{"n":3}`))
	if err != nil {
		t.Fatal(err)
	}
	subs, err := subscribe(addr, path, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer subs.close()
	if err := c.answer(path); err != nil {
		t.Fatal(err)
	}
	if n, _, err := subs.drain(); err != nil || n < 3*perRound {
		t.Errorf("%d events: %v", n, err)
	}
	b := &bench{host: &Server{Addr: addr}}
	answers, _, err := b.steps(2, 5)
	if err != nil || len(answers) != 5 {
		t.Errorf("%d answers: %v", len(answers), err)
	}
	if s, err := b.segment("one"); err != nil || s.events != 4 || len(s.snapshot) == 0 {
		t.Errorf("segment %+v: %v", s, err)
	}
}
