package commands

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvferry/internal/shared/argument"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/seed"
	"kvferry/internal/testkit/servertest"
	"kvferry/redis/state"
	"kvferry/redis/syntax"
)

func bytesOf(words []string) [][]byte {
	out := make([][]byte, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}

// TestAnswers gives commands, half of them broken, to a server and to the state: both refuse the same, and hold the same then.
func TestAnswers(t *testing.T) {
	seed := seed.Of(t)
	for range 3 {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { answers(t, seed, 6000) })
		seed++
	}
}

func answers(t *testing.T, seed int64, length int) {
	r := rand.New(rand.NewSource(seed))
	c := redistest.Start(t).Client()
	known, err := c.Known()
	if err != nil {
		t.Fatal(err)
	}
	list := redistest.PatternsOf(known)
	s := servertest.Sized(t, 1<<20)
	s.Now = time.Now().UnixMilli()
	refusals := 0
	for range length {
		words := redistest.Command(r, list)
		if r.Intn(2) == 0 {
			words = redistest.Broken(r, words)
		}
		if !known[words[0]] || redistest.Gone(words) || redistest.Judged(words) || known["HSETEX"] && redistest.Otherwise(words) {
			continue
		}
		got := Do(s, bytesOf(words))
		var reply *argument.ReplyError
		var no *state.UnsupportedError
		if errors.As(got, &no) {
			continue
		}
		_, want := c.Do(words...)
		refused := errors.As(got, &reply)
		if got != nil && !refused {
			t.Fatalf("%q: %v", words, got)
		}
		var answer redistest.Error
		if errors.As(want, &answer) != refused {
			t.Errorf("%q: the server answers %v, the state %v", words, want, got)
		}
		if refused {
			refusals++
		}
	}
	if refusals < length/4 || refusals > length*3/4 {
		t.Errorf("%d of %d commands were refused: the test tests little", refusals, length)
	}
	want, got := c.Records(t), servertest.Contents(t, s)
	if known["HSETEX"] { // what newer servers do otherwise
		redistest.WithoutConsumers(want)
		redistest.WithoutConsumers(got)
	}
	for _, d := range redistest.Diff(want, got, 5) {
		t.Error(d)
	}
}

// unfollowed are commands whose effect the state does not follow.
const unfollowed = "SPOP T|INCRBYFLOAT S 1.5|HINCRBYFLOAT H F 1|LMPOP 2 L L LEFT|ZMPOP 1 Z MIN COUNT 2|GEOADD G 13 38 M|BLPOP L L 0.01|XAUTOCLAIM X Q U 0 0|SORT T BY s* STORE L|SET S V NX GET"

// TestLostAnswers gives commands to a server and to a state that does not follow some of them and does not
// know others: the server agrees with every key that the state then considers exact.
func TestLostAnswers(t *testing.T) {
	seed := seed.Of(t)
	// An unknown command without keys may lose all of them: such a run tests little, and another follows.
	for range 10 {
		if exact, lost := lostAnswers(t, seed); exact >= 5 && lost >= 5 {
			return
		}
		seed++
	}
	t.Error("few keys were exact, or lost: the test tests little")
}

// lostAnswers returns the number of exact and of lost keys.
func lostAnswers(t *testing.T, seed int64) (exact, missed int) {
	t.Helper()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	c := redistest.Start(t).Client()
	s := servertest.Sized(t, 1<<20)
	s.Now = time.Now().UnixMilli()
	list := append(slices.Clone(redistest.Patterns), unfollowed)
	for i := range 3600 {
		words := redistest.Command(r, list)
		if redistest.Gone(words) {
			continue
		}
		mine := slices.Clone(words)
		if i%1000 == 0 {
			mine, words = []string{"FLUSHALL"}, []string{"FLUSHALL"} // lost values spread
		} else if words[0] != "SELECT" && words[0] != "SWAPDB" && words[0] != "MOVE" && !slices.Contains(words, "DB") && r.Intn(200) == 0 {
			mine[0] = "NEW." + words[0]
		}
		_, _ = c.Do(words...)
		var no *state.UnsupportedError
		if err := Do(s, bytesOf(mine)); errors.As(err, &no) && !no.Near {
			if _, err := Lose(s, bytesOf(mine), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, lost := c.Records(t), map[string]bool{}
	for id := range want {
		db, key, _ := strings.Cut(id, "/")
		n, _ := strconv.Atoi(db)
		if s.DB.FindIn(n, []byte(key)).Lost() != nil {
			lost[id] = true
			delete(want, id)
		}
	}
	for _, d := range redistest.Diff(want, servertest.Contents(t, s), 5) {
		t.Error(d)
	}
	return len(want), len(lost)
}

// TestTable compares the properties of commands in the table with the server's.
func TestTable(t *testing.T) {
	own := map[string]bool{"SORT": true, "COPY": true} // their options determine the access to keys
	var visit func(info []any)
	seen := 0
	visit = func(info []any) {
		name := strings.ToUpper(redistest.Text(info[0]))
		var flags []string
		for _, f := range info[2].([]any) {
			flags = append(flags, redistest.Text(f))
		}
		c, ok := table()[name]
		writes := slices.Contains(flags, "write")
		switch {
		case !ok:
			if writes {
				t.Errorf("%s is not in the table", name)
			}
		case int64(c.Arity) != info[1].(int64):
			t.Errorf("%s: arity %d, the server says %d", name, c.Arity, info[1])
		case writes != c.write && !c.container && name[0] != 'X':
			t.Errorf("%s: the server says %q", name, flags)
		case writes && !own[name]:
			seen++
			compareKeys(t, name, c, info)
		}
		if ok && !c.container {
			return
		}
		for _, sub := range info[9].([]any) {
			visit(sub.([]any))
		}
	}
	for _, info := range redistest.Start(t).Client().Must(t, "COMMAND").([]any) {
		visit(info.([]any))
	}
	if seen < 80 {
		t.Errorf("only %d commands were compared", seen)
	}
}

// compareKeys compares the keys of a command, if the server gives them by position.
func compareKeys(t *testing.T, name string, c *command, info []any) {
	first, last, step := info[3].(int64), info[4].(int64), info[5].(int64)
	n := max(c.Arity, -c.Arity) + 2*(max(-c.Arity, 0)+1)%3 // a few more, if variadic
	a := make([][]byte, n)
	for i := range a {
		a[i] = fmt.Append(nil, i)
	}
	want := []string{}
	if last < 0 {
		last += int64(n)
	}
	for i := first; step > 0 && i > 0 && i <= last; i += step {
		want = append(want, fmt.Sprint(i))
	}
	got := []string{}
	for _, k := range c.uses(&state.Server{DB: new(state.State)}, a) {
		got = append(got, string(k.key))
	}
	if first > 0 && name != "MOVE" && name != "MIGRATE" && !strings.HasPrefix(name, "Z") && !slices.Equal(got, want) {
		t.Errorf("%s: keys %v, the server says %v", name, got, want)
	}
}

// TestOracle replays random commands here and in a server that loads them as its log: they mean the same.
func TestOracle(t *testing.T) {
	seed := seed.Of(t)
	rounds, length := 6, 4000
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { oracle(t, seed, length) })
		seed++
	}
}

func oracle(t *testing.T, seed int64, length int) {
	r := rand.New(rand.NewSource(seed))
	memory := int64(1 << 20)
	if seed%2 == 0 {
		memory = 8 << 10 // most rows are in the store
	}
	s := servertest.Sized(t, memory)
	s.Now = time.Now().UnixMilli()
	var log []byte
	refused := 0
	for range length {
		c := redistest.Command(r, redistest.Patterns)
		if r.Intn(4) == 0 {
			c = redistest.Broken(r, c)
		}
		if known, ok := find(s, bytesOf(c)); !ok || !syntax.Takes(known.Newest, len(c)) || redistest.Judged(c) {
			continue // servers do not load a log with a wrong number of arguments
		}
		err := Do(s, bytesOf(c))
		var reply *argument.ReplyError
		var no *state.UnsupportedError
		switch {
		case errors.As(err, &no):
			continue // the server is not given it either
		case errors.As(err, &reply):
			refused++
		case err != nil:
			t.Fatalf("%q: %v", c, err)
		}
		log = redistest.Append(log, c...)
	}
	if refused > length/2 {
		t.Errorf("%d of %d commands were refused: the test tests little", refused, length)
	}
	dir := t.TempDir()
	redistest.WriteAOF(t, dir, log)
	server := redistest.StartIn(t, dir, "--appendonly", "yes")
	want := server.Client().Records(t)
	if len(want) < 20 {
		t.Errorf("only %d keys", len(want))
	}
	got := servertest.Contents(t, s)
	for _, d := range redistest.Diff(want, got, 5) {
		t.Error(d)
	}
}
