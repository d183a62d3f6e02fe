package limit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for s, want := range map[string]Rate{
		"none": {}, "100/s": {100, time.Second, 100}, "30/m:5": {30, time.Minute, 5}, "1/h": {1, time.Hour, 1}, "1000000/s": {most, time.Second, most},
	} {
		if got, err := ParseRate(s); err != nil || got != want || got.String() != s {
			t.Errorf("%s: %+v %q, %v", s, got, got, err)
		}
	}
	for _, s := range []string{"", "0/s", "-1/s", "1", "1/", "/s", "1/d", "01/s", "+1/s", "1/s:", "1/s:0", "1.5/s", "1/s:2:3", "1000001/s", "1e3/s", " 1/s", "None"} {
		if r, err := ParseRate(s); err == nil {
			t.Errorf("%q is read as %+v", s, r)
		}
	}
}

// A burst goes through, the next one waits for exactly as long as it is told, and
// one party's waiting is nobody else's.
func TestBucket(t *testing.T) {
	b := NewBuckets[string](Rate{Count: 10, Per: time.Second, Burst: 3}, 100)
	now := time.Now()
	for i := range 3 {
		if w := b.Take("a", now); w != 0 {
			t.Fatalf("%d of the burst waits %s", i, w)
		}
	}
	w := b.Take("a", now)
	if w != 100*time.Millisecond || b.Wait("a", now) != w {
		t.Fatalf("waits %s and %s", w, b.Wait("a", now))
	}
	if b.Take("b", now) != 0 {
		t.Error("another party waits")
	}
	if b.Take("a", now.Add(w-1)) == 0 {
		t.Error("went through before its time")
	}
	if again := b.Take("a", now.Add(w)); again != 0 {
		t.Errorf("told to wait %s, and then another %s", w, again)
	}
	if b.Take("a", now.Add(w)) == 0 {
		t.Error("one token was given twice")
	}
	// After a rest there is one burst again, and no more than that.
	later := now.Add(time.Hour)
	n := 0
	for b.Take("a", later) == 0 {
		n++
	}
	if n != 3 {
		t.Errorf("%d at once after a rest", n)
	}
}

func TestNoRate(t *testing.T) {
	b := NewBuckets[int](Rate{}, 1)
	for i := range 1000 {
		if b.Take(i, time.Now()) != 0 || b.Len() != 0 {
			t.Fatal("a bucket of no bound")
		}
	}
}

// A flood of names neither takes memory without end nor empties anybody's bucket
// but the one that newcomers share.
func TestBucketsAreBounded(t *testing.T) {
	b := NewBuckets[string](Rate{Count: 1, Per: time.Hour, Burst: 2}, 160)
	now := time.Now()
	b.Take("old", now)
	through := 0
	for i := range 100_000 {
		if b.Take(fmt.Sprint(i), now) == 0 {
			through++
		}
	}
	if n := b.Len(); n > 160 {
		t.Errorf("%d buckets are kept", n)
	}
	if through > 160+2*shards {
		t.Errorf("%d of the flood went through", through)
	}
	if second, third := b.Take("old", now), b.Take("old", now); second != 0 || third == 0 {
		t.Error("the flood has changed another's bucket")
	}
	// What is full again is forgotten, and there is room.
	if later := now.Add(3 * time.Hour); b.Take("new", later)+b.Take("new", later) != 0 || b.Take("new", later) == 0 {
		t.Error("no room after all buckets were full again")
	}
}

func TestShares(t *testing.T) {
	s := NewShares[string](10, 6)
	for _, c := range []struct {
		who  string
		n    int64
		want bool
	}{{"a", 6, true}, {"a", 1, false}, {"b", 5, false}, {"b", 4, true}, {"c", 1, false}} {
		if s.Take(c.who, c.n) != c.want {
			t.Errorf("%s takes %d: %v", c.who, c.n, !c.want)
		}
	}
	s.Give("a", 6)
	s.Give("b", 4)
	if n, parties := s.Used(); n != 0 || parties != 0 {
		t.Errorf("%d are in use by %d", n, parties)
	}
	free := NewShares[int](0, 0)
	if !free.Take(1, 1<<40) {
		t.Error("a bound where there is none")
	}
	for total, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 100: 75, 4096: 3072} {
		if got := Portion(total); got != want {
			t.Errorf("%d of %d", got, total)
		}
	}
}

// However many of one party wait, another's turn comes with the next place.
func TestFairTakesTurns(t *testing.T) {
	f := NewFair[string](2, 0)
	ctx := context.Background()
	for range 2 {
		if err := f.Enter(ctx, "hog"); err != nil {
			t.Fatal(err)
		}
	}
	in := make(chan string, 100)
	wait := func(who string, n int) {
		for range n {
			go func() {
				if f.Enter(ctx, who) == nil {
					in <- who
				}
			}()
		}
	}
	waiting := func(n int) {
		t.Helper()
		for range 10_000 {
			f.mu.Lock()
			have := 0
			for _, w := range f.wait {
				have += len(w)
			}
			f.mu.Unlock()
			if have == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("%d do not wait", n)
	}
	wait("hog", 50)
	waiting(50)
	wait("b", 2)
	waiting(52)
	wait("c", 1)
	waiting(53)
	var order []string
	for range 6 {
		f.Leave("hog") // whoever it is: the count of places is what matters here
		who := <-in
		order = append(order, who)
		if who != "hog" { // so that the books stay right
			f.mu.Lock()
			f.held[who]--
			f.held["hog"]++
			f.mu.Unlock()
		}
	}
	if want := []string{"hog", "b", "c", "hog", "b", "hog"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// One party never holds all places, and one who gives up takes none with him.
func TestFairKeepsPlacesForOthers(t *testing.T) {
	f := NewFair[string](4, 3)
	ctx, cancel := context.WithCancel(context.Background())
	for range 3 {
		if err := f.Enter(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	gone := make(chan error, 20)
	for range 20 {
		go func() { gone <- f.Enter(ctx, "a") }()
	}
	if err := f.Enter(context.Background(), "b"); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 20 {
		if err := <-gone; err == nil {
			t.Error("a fourth place for one")
		}
	}
	for range 3 {
		f.Leave("a")
	}
	f.Leave("b")
	if f.Held() != 0 || f.free != 4 || len(f.turn)+len(f.wait)+len(f.held) != 0 {
		t.Errorf("left over: %+v", f)
	}
}

func TestFairUnderLoad(t *testing.T) {
	f := NewFair[int](5, 3)
	var mu sync.Mutex
	inside, by := 0, map[int]int{}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%7 == 0 {
				cancel()
			}
			who := i % 4
			if f.Enter(ctx, who) != nil {
				return
			}
			mu.Lock()
			inside++
			by[who]++
			if inside > 5 || by[who] > 3 {
				t.Errorf("%d inside, %d of one", inside, by[who])
			}
			inside--
			by[who]--
			mu.Unlock()
			f.Leave(who)
		})
	}
	all.Wait()
	if f.Held() != 0 || f.free != 5 {
		t.Errorf("%d held, %d free", f.Held(), f.free)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"none", "1/s", "5/m:9", "1/s:", "::", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v comes back as %+v", s, r, again)
		}
		if !r.None() && (r.gap() < 1 || r.Burst < 1 || r.gap()*time.Duration(r.Burst) < 1) {
			t.Errorf("%q: %+v", s, r)
		}
	})
}
