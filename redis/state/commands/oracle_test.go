package commands

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"kvferry/internal/redistest"
	"kvferry/redis/state/server"
	"kvferry/redis/state/server/servertest"
)

var oracleSeed = flag.Int64("seed", 0, "seed of the commands that a server and the state replay; 0: by the clock")

// words are what the letters of a command's pattern stand for.
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

// commandOf makes a random command. Few deletions and changes of database leave something to compare.
func commandOf(r *rand.Rand) []string {
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

// TestOracle replays random commands here and in a server that loads them as its log: they mean the same.
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
		c := commandOf(r)
		err := Do(s, bytesOf(c))
		var reply *server.ReplyError
		var no *server.UnsupportedError
		switch {
		case errors.As(err, &no):
			continue // the server does not get it either
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
