package redistest

import (
	"fmt"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

// Known are the names of a server's commands.
func (c *Client) Known() (map[string]bool, error) {
	list, err := c.Do("COMMAND", "LIST")
	known := map[string]bool{}
	for _, name := range texts(list) {
		known[strings.ToUpper(name)] = true
	}
	return known, err
}

// PatternsOf are Patterns and those of newer servers that know the commands.
func PatternsOf(known map[string]bool) []string {
	list := slices.Clone(Patterns)
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		if known[name] {
			list = append(list, newer[name], newer[name])
		}
	}
	return list
}

var consumers = regexp.MustCompile(` "consumer [^"]*"| read=-?[0-9]*`)

// WithoutConsumers leaves out of records what depends on the version: since 7.2, XCLAIM makes a consumer that gets
// nothing, and 8.6 bounds what a group is said to have read.
func WithoutConsumers(records map[string]string) {
	for key, r := range records {
		records[key] = consumers.ReplaceAllString(r, "")
	}
}

// Patterns are the commands; a single capital letter is a random word.
var Patterns = strings.Split(strings.TrimSpace(`
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
	case "@": // a sorted set with one score
		return key("a")
	case "^": // places, of which no two are the same
		return "e" + pick("0", "1", "2", "3")
	case "!": // a list of the digits of keys
		return "n" + pick("0", "1", "2", "3")
	case "A":
		return fmt.Sprintf("%016x", xxh3.HashString(word(r, "V")))
	case "J":
		return fmt.Sprint(r.Int63n(1 << 52))
	}
	return w
}

// Command makes a random command. Few deletions and changes of database leave something to compare.
func Command(r *rand.Rand, patterns []string) []string {
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
			if rest, ok := strings.CutPrefix(w, "#"); ok {
				words[i+1] = "#" + word(r, rest)
			}
		}
		return words
	}
}

// newer are commands of newer servers, by a command that only these servers have.
var newer = map[string]string{"DELEX": `SET S V IFEQ V|SET S V IFNE V|SET S V IFDEQ A|SET S V IFDNE A|SET S V XX PXAT W GET|DELEX S|DELEX S IFEQ V|DELEX S IFNE V|DELEX S IFDEQ A|DELEX S IFDNE A|XDELEX X IDS 1 E|XDELEX X DELREF IDS 2 E E|XDELEX X ACKED IDS 1 E|XDELEX X KEEPREF IDS 3 E E E|XACKDEL X Q IDS 1 E|XACKDEL X Q DELREF IDS 2 E E|XACKDEL X Q ACKED IDS 2 E E|XACKDEL X Q KEEPREF IDS 1 E|XTRIM X MAXLEN 3 DELREF|XTRIM X MAXLEN = N ACKED|XTRIM X MINID E ACKED|XTRIM X DELREF MINID = E|XADD X DELREF MAXLEN N E F V|XADD X MAXLEN = 2 ACKED E F V|XADD X ACKED MINID E E F V|XADD X NOMKSTREAM DELREF MAXLEN 1 E F V|BITOP DIFF S S S|BITOP DIFF1 S S S S|BITOP ANDOR S S S|BITOP ONE S S S`,
	"HSETEX":  `HSETEX H PXAT W FIELDS 1 F V|HSETEX H FNX KEEPTTL FIELDS 2 F V F V|HSETEX H FXX FIELDS 1 F V|HSETEX H EXAT 9999999999 FIELDS 1 F V|HGETDEL H FIELDS 1 F|HGETEX H PXAT W FIELDS 2 F F|HGETEX H PERSIST FIELDS 1 F|HPEXPIREAT H W FIELDS 1 F|HPEXPIREAT H W NX FIELDS 2 F F|HEXPIREAT H 9999999999 GT FIELDS 1 F|HPEXPIREAT H W XX FIELDS 1 F|HPEXPIREAT H W LT FIELDS 1 F|HPERSIST H FIELDS 2 F F|HSET H F V F V F V`,
	"XCFGSET": `HSETEX H FIELDS 1 F V KEEPTTL FXX|HPEXPIREAT H W FIELDS 1 F XX|HGETEX H FIELDS 1 F PXAT W`,
	"DELIFEQ": `DELIFEQ S V|SET S V IFEQ V PXAT W`, "MSETEX": `MSETEX 2 S V S V|MSETEX 1 S V NX PXAT W|MSETEX 2 S V S V KEEPTTL|MSETEX 1 S V XX`}

// misplaced are arguments that are put into commands to break them.
var misplaced = strings.Fields(`NX XX GT LT CH INCR GET KEEPTTL PERSIST EXAT PXAT REPLACE DB ASYNC LIMIT BY ASC DESC ALPHA STORE WEIGHTS AGGREGATE MAX
	BYSCORE BYLEX REV WITHSCORES FROMMEMBER FROMLONLAT BYRADIUS BYBOX COUNT ANY WITHDIST STOREDIST MAXLEN MINID NOMKSTREAM MKSTREAM ENTRIESREAD
	ENTRIESADDED MAXDELETEDID RETRYCOUNT FORCE JUSTID LASTID OVERFLOW FAIL ( 0 -1 1 2 x = 5-5 99999999999 s1 z1 01 +1 1.5 9223372036854775808 -9223372036854775809 1e3 -0 [a`)

// Broken takes out, repeats, swaps or changes words of a command.
func Broken(r *rand.Rand, words []string) []string {
	words = slices.Clone(words)
	for range 1 + r.Intn(2) {
		if len(words) < 2 {
			return words
		}
		i := 1 + r.Intn(len(words)-1)
		word := misplaced[r.Intn(len(misplaced))]
		if strings.Contains(words[0], "EXPIRE") && strings.Trim(word, "-0123456789") == "" {
			word = "1.5" // a moment that has come deletes the key on a server that loads no log
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

// Judged reports whether a server judges a command otherwise when it comes from a log, or when its databases have other
// numbers, or looks at what does not matter without STORE.
func Judged(words []string) bool {
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

// Otherwise reports whether newer servers refuse a command that some servers take: it is in no log of theirs.
func Otherwise(words []string) bool {
	count := func(of ...string) (n int) {
		for _, w := range words[1:] {
			if slices.Contains(of, w) {
				n++
			}
		}
		return n
	}
	repeated := slices.ContainsFunc(words[1:], func(w string) bool { return count(w) > 1 })
	late := false // from 2^48 ms on, which Redis refuses and Valkey takes
	for i, most := range map[int]int{slices.Index(words, "EXAT"): 11, slices.Index(words, "PXAT"): 14} {
		late = late || i > 0 && i+1 < len(words) && len(words[i+1]) > most
	}
	switch words[0] {
	case "SORT", "XSETID", "GETEX":
		return true
	case "SET", "HGETEX":
		return repeated || late && words[0] == "HGETEX"
	case "HSETEX":
		return late || repeated || count("NX", "XX") > 0
	case "HEXPIREAT", "HPEXPIREAT":
		return repeated || count("NX", "XX", "GT", "LT") > 1
	}
	return false
}

// Gone reports whether a command gives a moment that has come: a server that loads no log deletes the key.
func Gone(words []string) bool {
	for i, w := range words[1:] {
		short := len(w) < 10 || w == "99999999999" && words[i] != "EXAT" && words[0] != "EXPIREAT"
		if strings.Trim(w, "0123456789") == "" && short &&
			(words[i] == "EXAT" || words[i] == "PXAT" || strings.Contains(words[0], "EXPIRE")) {
			return true
		}
	}
	return false
}
