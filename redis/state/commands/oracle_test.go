package commands

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/servertest"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

var oracleSeed = flag.Int64("seed", 0, "seed of the commands that a server and the state replay; 0: by the clock")

// word returns a random word for a letter of a command's pattern.
func word(r *rand.Rand, w string) string {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	key := func(prefix string) string {
		if r.Intn(25) == 0 {
			prefix = pick("s", "h", "l", "t", "z", "x", "p", "g")
		}
		return prefix + pick("0", "1", "2", "3")
	}
	switch w {
	case "K":
		return key(pick("s", "h", "l", "t", "z", "x", "p", "g"))
	case "S", "H", "L", "T", "Z", "X", "P", "G":
		return key(strings.ToLower(w))
	case "V":
		return pick("", "a", "b", "c", "value", "-12", "7", "9223372036854775800", "\x00\xff", strings.Repeat("long ", 30))
	case "F":
		return pick("", "f1", "f2", "f3", "f4", "\xff")
	case "M":
		return pick("", "a", "b", "c", "d", "e", "12", "-7", "1.5", "\x00")
	case "I":
		return fmt.Sprint(r.Intn(9) - 4)
	case "N":
		return fmt.Sprint(r.Intn(5) + 1)
	case "B":
		return fmt.Sprint(r.Intn(300))
	case "O":
		return fmt.Sprint(r.Intn(40000))
	case "C":
		return pick("0", "-0", "1", "2.5", "-3", "1e300", "inf", "-inf", "9007199254740993", "0.1", "0.2", "nan")
	case "R":
		return pick("-inf", "+inf", "0", "(0", "1", "(2.5", "-3", "5")
	case "Y":
		return pick("-", "+", "[a", "(b", "[c", "(", "[")
	case "E":
		return fmt.Sprintf("%d-%d", r.Intn(40)+1, r.Intn(3))
	case "U":
		return pick("u1", "u2", "u3")
	case "Q":
		return pick("q1", "q2")
	case "D":
		return pick("0", "0", "1", "5")
	case "W":
		return fmt.Sprint(time.Now().UnixMilli() + int64(r.Intn(1e9)) + 1e9)
	case "A":
		return fmt.Sprintf("%016x", xxh3.HashString(word(r, "V")))
	case "J":
		return fmt.Sprint(r.Int63n(1 << 52))
	}
	return w
}

// patterns are the commands; a capital letter alone stands for a random word.
var patterns = strings.Split(strings.TrimSpace(`
SET S V|SET S V|SET S V NX|SET S V XX GET|SET S V PXAT W|SET S V KEEPTTL|SETNX S V|GETSET S V|MSET S V S V|MSETNX S V S V
APPEND S V|SETRANGE S B V|SETRANGE S O V|APPEND S V|INCR S|DECR S|INCRBY S I|DECRBY S I|INCRBY S V|SETBIT S B 1|SETBIT S B 0|SETBIT S O 1
BITOP AND S S S|BITOP OR S S S|BITOP XOR S S S|BITOP NOT S S|GETDEL S|GETEX S PXAT W|GETEX S PERSIST
BITFIELD S SET u8 B V|BITFIELD S SET i5 #N I INCRBY u3 B I|BITFIELD S OVERFLOW SAT INCRBY i8 B 100 OVERFLOW FAIL INCRBY u2 B N|BITFIELD S SET i64 B 9223372036854775800 OVERFLOW SAT INCRBY i64 B 7|BITFIELD S OVERFLOW SAT INCRBY u63 B -5|BITFIELD S INCRBY i16 B I
HSET H F V|HSET H F V F V|HMSET H F V F V F V|HSETNX H F V|HDEL H F|HDEL H F F|HINCRBY H F I|HINCRBY H F V
RPUSH L V V|LPUSH L V V V|RPUSHX L V|LPUSHX L V|LPOP L|RPOP L|LPOP L N|RPOP L N|LSET L I V|LTRIM L I I|LINSERT L BEFORE V V|LINSERT L AFTER V V
LREM L I V|LREM L 0 V|RPOPLPUSH L L|LMOVE L L LEFT RIGHT|LMOVE L L RIGHT LEFT|LMOVE L L LEFT LEFT|RPUSH L M M M M|LREM L -1 M
SADD T M M M|SADD T M|SREM T M|SREM T M M|SMOVE T T M|SUNIONSTORE T T T|SINTERSTORE T T T|SDIFFSTORE T T T T
ZADD Z C M|ZADD Z C M C M C M|ZADD Z NX C M|ZADD Z XX C M C M|ZADD Z GT C M|ZADD Z LT CH C M|ZADD Z INCR C M|ZADD Z XX GT INCR C M|ZINCRBY Z C M|ZREM Z M|ZPOPMIN Z|ZPOPMAX Z N
ZREMRANGEBYRANK Z I I|ZREMRANGEBYSCORE Z R R|ZREMRANGEBYLEX Z Y Y|ZUNIONSTORE Z 2 Z Z|ZUNIONSTORE Z 3 Z Z T WEIGHTS 1 0.1 C AGGREGATE MAX|ZUNIONSTORE Z 3 Z Z Z WEIGHTS 0.1 0.2 0.7
ZINTERSTORE Z 2 Z T|ZINTERSTORE Z 3 Z Z Z AGGREGATE MIN|ZDIFFSTORE Z 2 Z Z|ZRANGESTORE Z Z I I|ZRANGESTORE Z Z I I REV|ZRANGESTORE Z Z R R BYSCORE LIMIT I N|ZRANGESTORE Z Z R R BYSCORE REV LIMIT 0 N|ZRANGESTORE Z Z Y Y BYLEX
XADD X E F V|XADD X E F V F V|XADD X E F V|XADD X NOMKSTREAM E F V|XADD X MAXLEN N E F V|XADD X MAXLEN = 3 E F V|XADD X MINID E E F V|XDEL X E|XDEL X E E|XTRIM X MAXLEN N|XTRIM X MINID = E|XSETID X E
XSETID X 100-0 ENTRIESADDED 500 MAXDELETEDID E|XGROUP CREATE X Q E|XGROUP CREATE X Q $ MKSTREAM|XGROUP CREATE X Q E ENTRIESREAD N|XGROUP SETID X Q E|XGROUP SETID X Q E ENTRIESREAD N|XGROUP DESTROY X Q|XGROUP CREATECONSUMER X Q U|XGROUP DELCONSUMER X Q U
XCLAIM X Q U 0 E TIME 1700000000000 RETRYCOUNT N FORCE JUSTID|XCLAIM X Q U 0 E E E FORCE LASTID E|XCLAIM X Q U 0 E E JUSTID|XACK X Q E E|XADD X 50-N F V
PFADD P M M M|PFADD P V J J|PFADD P J J J J J J J J|PFMERGE P P P|PFMERGE P P|PFCOUNT P|PFADD P
ZADD G J M J J|ZADD G 3479099956230698 M 3479447370796909 V|GEOSEARCHSTORE G G FROMLONLAT 15 37 BYRADIUS 200 km ASC|GEOSEARCHSTORE G G FROMMEMBER M BYBOX 4000 4000 km COUNT N|GEORADIUS G 15 37 10000 km STORE G
SORT L STORE L|SORT L ALPHA DESC STORE L|SORT T ALPHA STORE L LIMIT I N|SORT Z BY nosort DESC STORE L|SORT T BY s* GET # GET h*->f1 STORE L|SORT T BY nosort STORE L|SORT Z STORE L
DEL K|UNLINK K K|RENAME K K|RENAMENX K K|COPY K K|COPY K K REPLACE|COPY K K DB D REPLACE|MOVE K D|PEXPIREAT K W|EXPIREAT K 99999999999|PEXPIREAT K 1000|PERSIST K|PEXPIREAT K W GT|PEXPIREAT K W NX|SELECT D|SWAPDB D D
`), "\n")

// commandOf makes a random command. Deletions and changes of database are rare, so that there is data to
// compare.
func commandOf(r *rand.Rand, patterns []string) []string {
	for {
		list := strings.Split(patterns[r.Intn(len(patterns))], "|")
		words := strings.Split(list[r.Intn(len(list))], " ")
		switch words[0] {
		case "SWAPDB", "SELECT", "MOVE":
			if r.Intn(4) > 0 {
				continue
			}
		}
		for i, w := range words[1:] {
			words[i+1] = word(r, w)
			if i := strings.TrimPrefix(w, "#"); i != w {
				words[i0(words, w)] = "#" + word(r, i)
			}
		}
		return words
	}
}

func i0(words []string, w string) int {
	for i := range words {
		if words[i] == w {
			return i
		}
	}
	return 0
}

func bytesOf(words []string) [][]byte {
	out := make([][]byte, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}

// newer are commands of newer servers, by a command that shows whether a server has them.
var newer = map[string]string{"DELEX": `SET S V IFEQ V|SET S V IFNE V|SET S V IFDEQ A|SET S V IFDNE A|SET S V XX PXAT W GET|DELEX S|DELEX S IFEQ V|DELEX S IFNE V|DELEX S IFDEQ A|DELEX S IFDNE A|XDELEX X IDS 1 E|XDELEX X DELREF IDS 2 E E|XDELEX X ACKED IDS 1 E|XDELEX X KEEPREF IDS 3 E E E|XACKDEL X Q IDS 1 E|XACKDEL X Q DELREF IDS 2 E E|XACKDEL X Q ACKED IDS 2 E E|XACKDEL X Q KEEPREF IDS 1 E|XTRIM X MAXLEN 3 DELREF|XTRIM X MAXLEN = N ACKED|XTRIM X MINID E ACKED|XTRIM X DELREF MINID = E|XADD X DELREF MAXLEN N E F V|XADD X MAXLEN = 2 ACKED E F V|XADD X ACKED MINID E E F V|XADD X NOMKSTREAM DELREF MAXLEN 1 E F V|BITOP DIFF S S S|BITOP DIFF1 S S S S|BITOP ANDOR S S S|BITOP ONE S S S`,
	"HSETEX":  `HSETEX H PXAT W FIELDS 1 F V|HSETEX H FNX KEEPTTL FIELDS 2 F V F V|HSETEX H FXX FIELDS 1 F V|HSETEX H EXAT 9999999999 FIELDS 1 F V|HGETDEL H FIELDS 1 F|HGETEX H PXAT W FIELDS 2 F F|HGETEX H PERSIST FIELDS 1 F|HPEXPIREAT H W FIELDS 1 F|HPEXPIREAT H W NX FIELDS 2 F F|HEXPIREAT H 9999999999 GT FIELDS 1 F|HPEXPIREAT H W XX FIELDS 1 F|HPEXPIREAT H W LT FIELDS 1 F|HPERSIST H FIELDS 2 F F|HSET H F V F V F V`,
	"XCFGSET": `HSETEX H FIELDS 1 F V KEEPTTL FXX|HPEXPIREAT H W FIELDS 1 F XX|HGETEX H FIELDS 1 F PXAT W`,
	"DELIFEQ": `DELIFEQ S V|SET S V IFEQ V PXAT W`, "MSETEX": `MSETEX 2 S V S V|MSETEX 1 S V NX PXAT W|MSETEX 2 S V S V KEEPTTL|MSETEX 1 S V XX`}

// misplaced are arguments inserted into commands to break them.
var misplaced = strings.Fields(`NX XX GT LT CH INCR GET KEEPTTL PERSIST EXAT PXAT REPLACE DB ASYNC LIMIT BY ASC DESC ALPHA STORE WEIGHTS AGGREGATE MAX
	BYSCORE BYLEX REV WITHSCORES FROMMEMBER FROMLONLAT BYRADIUS BYBOX COUNT ANY WITHDIST STOREDIST MAXLEN MINID NOMKSTREAM MKSTREAM ENTRIESREAD
	ENTRIESADDED MAXDELETEDID RETRYCOUNT FORCE JUSTID LASTID OVERFLOW FAIL ( 0 -1 1 2 x = 5-5 99999999999 s1 z1 01 +1 1.5 9223372036854775808 -9223372036854775809 1e3 -0 [a`)

// broken removes, repeats, swaps or changes words of a command.
func broken(r *rand.Rand, words []string) []string {
	words = slices.Clone(words)
	for range 1 + r.Intn(2) {
		if len(words) < 2 {
			return words
		}
		i := 1 + r.Intn(len(words)-1)
		word := misplaced[r.Intn(len(misplaced))]
		if strings.Contains(words[0], "EXPIRE") && strings.Trim(word, "-0123456789") == "" {
			word = "1.5" // a past moment deletes the key on a server that is not loading a log
		}
		switch r.Intn(5) {
		case 0:
			words = slices.Delete(words, i, i+1)
		case 1:
			words = slices.Insert(words, i, words[i])
		case 2:
			words = slices.Insert(words, i+r.Intn(2), word)
		case 3:
			words[i] = word
		case 4:
			words[i], words[len(words)-1] = words[len(words)-1], words[i]
		}
	}
	return words
}

// TestAnswers gives commands, half of them broken, to a server and to the state: both refuse the same
// commands, and have the same keys.
func TestAnswers(t *testing.T) {
	seed := *oracleSeed
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	for range 3 {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { answers(t, seed, 6000) })
		seed++
	}
}

func answers(t *testing.T, seed int64, length int) {
	r := rand.New(rand.NewSource(seed))
	c := redistest.Start(t).Client()
	known := map[string]bool{}
	for _, name := range c.Strings(t, "COMMAND", "LIST") {
		known[strings.ToUpper(name)] = true
	}
	list := slices.Clone(patterns)
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		if known[name] {
			list = append(list, newer[name], newer[name])
		}
	}
	s := servertest.Sized(t, 1<<20)
	s.Now = time.Now().UnixMilli()
	refusals := 0
	for range length {
		words := commandOf(r, list)
		if r.Intn(2) == 0 {
			words = broken(r, words)
		}
		if !known[words[0]] || gone(words) || judged(words) || known["HSETEX"] && otherwise(words) {
			continue
		}
		got := Do(s, bytesOf(words))
		var reply *server.ReplyError
		var no *server.UnsupportedError
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
	if known["HSETEX"] { // since 7.2, XCLAIM creates a consumer even without entries, and 8.6 bounds a group's entries-read
		consumers := regexp.MustCompile(` "consumer [^"]*"| read=[0-9]*`)
		for _, records := range []map[string]string{want, got} {
			for key, r := range records {
				records[key] = consumers.ReplaceAllString(r, "")
			}
		}
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
	seed := *oracleSeed
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	c := redistest.Start(t).Client()
	s := servertest.Sized(t, 1<<20)
	s.Now = time.Now().UnixMilli()
	list := append(slices.Clone(patterns), unfollowed)
	for i := range 3600 {
		words := commandOf(r, list)
		if gone(words) {
			continue
		}
		mine := slices.Clone(words)
		if i%1000 == 0 {
			mine, words = []string{"FLUSHALL"}, []string{"FLUSHALL"} // lost values spread
		} else if words[0] != "SELECT" && words[0] != "SWAPDB" && words[0] != "MOVE" && !slices.Contains(words, "DB") && r.Intn(200) == 0 {
			mine[0] = "NEW." + words[0]
		}
		_, _ = c.Do(words...)
		var no *server.UnsupportedError
		if err := Do(s, bytesOf(mine)); errors.As(err, &no) && !no.Near {
			if err := Lose(s, bytesOf(mine), fmt.Append(nil, i)); err != nil {
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
	if len(want) < 5 || len(lost) < 5 {
		t.Errorf("%d keys are exact, %d lost: the test tests little", len(want), len(lost))
	}
}

// TestTable compares the properties of commands in the table with the server's.
func TestTable(t *testing.T) {
	own := map[string]bool{"SORT": true, "COPY": true}        // their options determine the access to keys
	grown := map[string]bool{"ZRANK": true, "ZREVRANK": true} // take more since 7.2
	var visit func(info []any)
	seen := 0
	visit = func(info []any) {
		name := strings.ToUpper(strings.ReplaceAll(redistest.Text(info[0]), "|", " "))
		var flags []string
		for _, f := range info[2].([]any) {
			flags = append(flags, redistest.Text(f))
		}
		c, ok := table[name]
		writes := slices.Contains(flags, "write")
		switch {
		case !ok:
			if writes {
				t.Errorf("%s is not in the table", name)
			}
		case int64(c.arity) != info[1].(int64) && !grown[name]:
			t.Errorf("%s: arity %d, the server says %d", name, c.arity, info[1])
		case writes != (c.flags&write != 0) && c.flags&container == 0 && name[0] != 'X':
			t.Errorf("%s: the server says %q", name, flags)
		case writes && !own[name]:
			seen++
			compareKeys(t, name, c, info)
		}
		if ok && c.flags&container == 0 {
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
	n := max(c.arity, -c.arity) + 2*(max(-c.arity, 0)+1)%3 // a few more, if variadic
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
	if c.keys != nil {
		for _, k := range c.keys(&server.Server{DB: new(state.State)}, a) {
			got = append(got, string(k.key))
		}
	}
	if first > 0 && name != "MOVE" && name != "MIGRATE" && !strings.HasPrefix(name, "Z") && !slices.Equal(got, want) {
		t.Errorf("%s: keys %v, the server says %v", name, got, want)
	}
}

// judged reports whether a server treats a command differently in a log, or with other database numbers, or
// checks arguments that are irrelevant without STORE.
func judged(words []string) bool {
	switch words[0] {
	case "SELECT", "SWAPDB", "MOVE":
		return slices.ContainsFunc(words[1:], func(w string) bool { return len(w) > 2 && w[0] >= '0' && w[0] <= '9' })
	case "SORT":
		return !slices.Contains(words[min(2, len(words)):], "STORE")
	case "XADD", "XTRIM":
		return slices.Contains(words, "LIMIT")
	}
	return slices.Contains(words[1:], "DB") || slices.Contains(words, "STOREDIST")
}

// otherwise reports whether newer servers refuse a command that some servers accept: their logs do not contain
// it.
func otherwise(words []string) bool {
	count := func(of ...string) (n int) {
		for _, w := range words[1:] {
			if slices.Contains(of, w) {
				n++
			}
		}
		return n
	}
	repeated := false
	for _, w := range words[1:] {
		repeated = repeated || count(w) > 1
	}
	switch words[0] {
	case "SORT", "XSETID", "GETEX":
		return true
	case "SET", "HGETEX":
		return repeated
	case "HSETEX":
		return repeated || count("NX", "XX") > 0
	case "HEXPIREAT", "HPEXPIREAT":
		return repeated || count("NX", "XX", "GT", "LT") > 1
	}
	return false
}

// gone reports whether a command contains a past moment: a server that is not loading a log deletes the key.
func gone(words []string) bool {
	for i, w := range words[1:] {
		short := len(w) < 10 || w == "99999999999" && words[i] != "EXAT" && words[0] != "EXPIREAT"
		if strings.Trim(w, "0123456789") == "" && short && (words[i] == "EXAT" || words[i] == "PXAT" || strings.Contains(words[0], "EXPIRE")) {
			return true
		}
	}
	return false
}

// TestOracle replays random commands here and in a server that loads them as its log, and compares the keys.
func TestOracle(t *testing.T) {
	seed := *oracleSeed
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
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
		c := commandOf(r, patterns)
		if r.Intn(4) == 0 {
			c = broken(r, c)
		}
		if known, ok := find(s, bytesOf(c)); !ok || !known.takes(len(c)) || judged(c) {
			continue // servers do not load a log with a wrong number of arguments
		}
		err := Do(s, bytesOf(c))
		var reply *server.ReplyError
		var no *server.UnsupportedError
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
