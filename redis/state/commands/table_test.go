package commands

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kvferry/internal/shared/argument"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/servertest"
	"kvferry/record"
	"kvferry/redis/state"
)

// made returns a server after running commands, one a line.
func made(t *testing.T, lines string) *state.Server { return servertest.Made(t, Do, lines) }

// some is a key of each type.
const some = `
SET s abc
SET n 5
SET full 12345678901234567890123
SET bad HYLL
SET runs HYLL` + "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01" + `
HSET h f v n 1 most 9223372036854775807
RPUSH l a b
SADD t a b
ZADD z 1 a -5 b`

// TestRefused: commands that a server refuses, and commands of unknown effect, change no keys.
func TestRefused(t *testing.T) {
	s := made(t, some)
	const wrongType, syntax, integer, args, numbers, mandatory = "WRONGTYPE", "syntax error", "not an integer", "wrong number", "numFields",
		"FIELDS is missing"
	const count = "another number of arguments"
	for line, want := range map[string]string{
		"NOSUCH a": "does not know this command", "SET s": count, "SELECT -1": "DB index", "SELECT x": "DB index", "SWAPDB x 1": "DB index",
		"SWAPDB 1 x": "DB index", "MOVE s x": "DB index", "MOVE s 0": "are the same", "COPY s s": "are the same", "COPY s k DB x": "DB index",
		"COPY s k NOW": "this option", "RENAME no k": "no such key", "EXPIRE s x": integer, "EXPIRE s 9223372036854775807": "invalid expire", "EXPIRE s 1 NO": "this option", "EXPIRE s 1 x": syntax, "EXPIRE s 1 NX GT": "not compatible",
		"GETDEL h": wrongType, "GETEX h": wrongType, "GETEX s EX 0": "invalid expire", "GETEX s EX x": integer,

		"SET s v EX 0": "invalid expire", "SET s v PX x": integer, "SET s v EX 9223372036854775807": "invalid expire", "SET s v NOW": "does not know this option",
		"SET h v GET": wrongType, "SETEX s x v": integer, "SETEX s 0 v": "invalid expire", "PSETEX s 9223372036854775807 v": "invalid expire", "GETSET h v": wrongType,
		"CLUSTER FLUSHSLOT 16384": "slot", "CLUSTER FLUSHSLOT x": "slot", "TRIMSLOTS RANGES 1 5 4": "slot", "TRIMSLOTS RANGES 2 4 5": args, "TRIMSLOTS x 1 4 5": syntax,
		"MSET a b c": args, "MSETNX a b c": args, "APPEND h v": wrongType, "SETRANGE s x v": integer, "SETRANGE s -1 v": "index out", "SETRANGE h 0 v": wrongType,
		"SETRANGE s 536870912 v": "longer than 512 MiB", "INCR s": integer, "INCR full": integer, "INCR h": wrongType, "INCRBY n x": integer,
		"DECRBY n -9223372036854775808": "overflow", "INCRBY n 9223372036854775807": "overflow",

		"HSET h f": count, "HSET s f v": wrongType, "HSET h f v g": args, "HSETNX s f v": wrongType, "HDEL s f": wrongType, "HINCRBY h f 1": "hash value is not",
		"HINCRBY h n x": integer, "HINCRBY s f 1": wrongType, "HINCRBY h most 1": "overflow",
		"HEXPIRE h x FIELDS 1 f": integer, "HEXPIRE h 9223372036854775807 FIELDS 1 f": "invalid expire", "HPEXPIREAT h -1 FIELDS 1 f": "invalid expire",
		"HEXPIRE h 10 FIELDS 2 f": numbers, "HEXPIRE h 10 FIELDS x f": numbers, "HEXPIRE h 10 NX f f": mandatory, "HEXPIRE h 10 NO FIELDS 1 f": "this option",
		"HEXPIRE s 10 FIELDS 1 f": wrongType, "HPERSIST h FIELDS 2 f": numbers, "HPERSIST s FIELDS 1 f": wrongType, "HGETDEL h FIELDS 0 f": numbers,
		"HGETEX h EX x FIELDS 1 f": integer, "HGETEX h EXAT FIELDS 1 PXAT 1797414962142": "FIELDS is missing", "HGETEX h EX 10 FIELDS 2 f": numbers, "HGETEX s PERSIST FIELDS 1 f": wrongType, "HSETEX h EX 0 FIELDS 1 f v": "invalid expire",
		"HSETEX h FXX FIELDS 2 f v": numbers, "HSETEX s FNX FIELDS 1 f v": wrongType,

		"RPUSH s a": wrongType, "LPOP s": wrongType, "LPOP l x": "", "LSET l 9 v": "index out", "LSET no 0 v": "no such key", "LSET l x v": integer, "LTRIM l x 1": integer,
		"LTRIM s 0 1": wrongType, "LINSERT l NEAR a b": syntax, "LINSERT s BEFORE a b": wrongType, "LREM l x a": integer, "LREM s 0 a": wrongType,
		"RPOPLPUSH s l": wrongType, "RPOPLPUSH l s": wrongType, "LMOVE l l UP LEFT": syntax, "LMOVE l l LEFT UP": syntax,
		"SADD s a": wrongType, "SREM s a": wrongType, "SMOVE s t a": wrongType, "SMOVE t s a": wrongType, "SUNIONSTORE k t s": wrongType,

		"ZADD z x a": "not a valid float", "ZADD z NX XX 1 a": "", "ZADD z GT NX 1 a": "", "ZADD z 1": count, "ZADD s 1 a": wrongType, "ZADD z INCR 1 a 2 b": "",
		"ZINCRBY z x a": "not a valid float", "ZINCRBY s 1 a": wrongType, "ZREM s a": wrongType, "ZPOPMIN s": wrongType, "ZPOPMIN z x": "", "ZREMRANGEBYRANK z x 1": integer,
		"ZREMRANGEBYRANK s 0 1": wrongType, "ZREMRANGEBYSCORE z x 1": "float", "ZREMRANGEBYSCORE s 0 1": wrongType, "ZREMRANGEBYLEX z x [b": "", "ZREMRANGEBYLEX s - +": wrongType,
		"ZUNIONSTORE k x z": integer, "ZUNIONSTORE k 0 z": "", "ZUNIONSTORE k 2 z": syntax, "ZUNIONSTORE k 1 z WEIGHTS x": "float", "ZUNIONSTORE k 1 z AGGREGATE no": syntax,
		"ZUNIONSTORE k 1 s": wrongType, "ZRANGESTORE k z a b": integer, "ZRANGESTORE k s 0 1": wrongType, "ZRANGESTORE k z 0 1 LIMIT 0 1": "",

		"GEORADIUS z x 1 1 km STORE k": "float", "GEORADIUS z 1 99 1 km STORE k": "longitude,latitude", "GEORADIUS z 1 1 1 miles STORE k": "unsupported unit",
		"GEORADIUS z 1 1 -1 km STORE k": "radius cannot be negative", "GEORADIUS z 1 1 1 km STORE k COUNT 0": "COUNT must be", "GEORADIUS z 1 1 1 km WHAT": "this option", "GEORADIUSBYMEMBER z a 1 km STORE k ANY": "requires COUNT", "SPOP t": "does not follow its effect",
		"GEORADIUSBYMEMBER z no 1 km STORE k": "could not decode", "GEORADIUSBYMEMBER s a 1 km STORE k": wrongType,
		"GEOSEARCHSTORE k z FROMMEMBER no FROMMEMBER a BYBOX 1 1 m": "could not decode",
		"GEOSEARCHSTORE k z FROMLONLAT 1 x BYRADIUS 1 m":            "float", "GEOSEARCHSTORE k z FROMMEMBER a BYBOX x 1 m": "numeric",
		"SORT z WHAT": "this option", "SORT z LIMIT x 1": integer, "SORT h STORE k": wrongType, "SORT t STORE k": "converted into double", "SORT t BY w* ALPHA STORE k": "an unknown order",

		"LMOVEM l k LEFT UP": syntax, "LMOVEM l k LEFT LEFT COUNT 1": "syntax", "LMOVEM l k LEFT LEFT COUNT 0 OBO": "out of range", "LMOVEM l s LEFT LEFT COUNT 1 OBO": wrongType, "LMOVEM l k LEFT LEFT COUNT 1 NEW": "this option",
		"ZMOVE z k NEW": "this option", "ZMOVE z s MIN": wrongType, "ZMOVE z k MIN COUNT 0": "out of range", "ZMOVE z k BYSCORE x 1": "float", "ZMOVE z k BYSCORE -inf inf": "is unknown", "ZMOVE z k MIN 5 5": syntax,
		"ZMOVEMEMBER z k MEMBERS 2 a": syntax, "ZMOVEMEMBER z k NEW MEMBERS 1 a": "this option", "ZMOVEMEMBER s k MEMBERS 1 a": wrongType, "MOVE s 1 NEW": "this option", "MOVE s 1 x": syntax, "SADDEX t EX 1 MEMBERS 1 a": "does not follow",
		"RESTORE k 0 payload": "payloads are not read here", "FUNCTION LOAD return": "Missing library", "FUNCTION RESTORE payload": "payloads are not read here",
	} {
		err := Do(s, servertest.Words(line))
		var reply *argument.ReplyError
		var no *state.UnsupportedError
		if !errors.As(err, &reply) && !errors.As(err, &no) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, d := range redistest.Diff(servertest.Contents(t, made(t, some)), servertest.Contents(t, s), 9) {
		t.Error("changed: " + d)
	}
}

// TestLost: keys written by a command of unknown effect are lost, and so are keys derived from them, until
// they are overwritten or deleted. For each log the test lists the lost keys and the lines that lost them.
func TestLost(t *testing.T) {
	const lost = "VADD v VALUES 1 1 e\n"
	s := servertest.New(t)
	for log, want := range map[string]string{
		lost: "0/v:0", lost + "DEL v": "", lost + "SET v 1": "", lost + "SET v 1 EX 100000000": "", lost + "SET v 1 KEEPTTL": "0/v:0", lost + "SET v 1 NX": "0/v:0",
		lost + "FLUSHALL": "", lost + "VSETATTR v e {}\nVREM v e": "0/v:2", lost + "RENAME v w": "0/w:0", lost + "RENAME v w\nSADD v a": "0/w:0", lost + "RENAME v w\nDEL w": "",
		lost + "SADD a 1\nRENAME a v": "", lost + "COPY v w": "0/v:0 0/w:0", lost + "COPY v w DB 3\nSELECT 3\nEXPIRE w 100": "0/v:0 3/w:0", lost + "MOVE v 3": "0/v:0 3/v:0", lost + "SWAPDB 0 3": "3/v:0",
		lost + "SADD a 1\nCOPY a v REPLACE": "", lost + "SADD a 1\nCOPY a v": "0/v:0", lost + "SWAPDB 0 3\nSELECT 3\nFLUSHDB": "", lost + "SUNIONSTORE d a v\nSUNIONSTORE e d\nDEL v": "0/d:0 0/e:0",
		lost + "SUNIONSTORE d a v\nSUNIONSTORE d a a\nDEL v": "", lost + "SMOVE s v m": "0/s:0 0/v:0", lost + "RENAMENX v s": "0/s:0 0/v:0", lost + "MSET v 1 w 2": "", lost + "MSETNX v 1 w 2": "0/v:0 0/w:0",
		lost + "MSETEX 2 v 1 w 2\nGET v": "0/v:0 0/w:0", lost + "ZUNIONSTORE d 2 a v": "0/d:0 0/v:0", lost + "BITOP OR d a v": "0/d:0 0/v:0", lost + "PFCOUNT v a": "0/v:0", lost + "PFMERGE d v": "0/d:0 0/v:0",
		lost + "GEOSEARCHSTORE d v FROMLONLAT 1 1 BYRADIUS 1 m": "0/d:0 0/v:0", lost + "RPUSH l 1\nSORT l BY * GET v STORE d": "0/v:0", lost + "RPUSH l v\nSORT l BY nosort GET * STORE d": "0/d:2 0/v:0",
		lost + "SORT v STORE d\nXGROUP CREATE v g 0": "0/d:0 0/v:0", lost + "XADD v 1-1 f v\nGETDEL v\nINCR v": "0/v:0", lost + "RESTORE v 0 x": "0/v:0", lost + "SET other 1\nFUNCTION FLUSH": "0/v:0",
		"SPOP a": "0/a:0", "SADD a b\nSPOP a\nDEL a": "", "INCRBYFLOAT f 1": "0/f:0", "LMPOP 2 a b LEFT": "0/a:0 0/b:0", "LMPOP 9 a b LEFT": "0/LEFT:0 0/a:0 0/b:0", "LMPOP -1 a LEFT": "", "BLPOP a b 0": "0/a:0 0/b:0",
		"XREADGROUP GROUP g c STREAMS x y > >": "0/x:0 0/y:0", "MIGRATE h 1 k 0 1": "0/k:0", "MIGRATE h 1 '' 0 1 KEYS k l": "0/k:0 0/l:0", "XADD x * f v": "0/x:0", "SET s v NEWER": "0/s:0", "COPY a b SOON": "0/b:0",
		"EVAL return 1 k arg\nSET a 1": "0/k:0", "EVAL return 0 k\nSET a 1": "", "FCALL f 1 k a\nDEL k": "", "GEORADIUS g 1 1 1 m STOREDIST d COUNT 1 LATER": "0/d:0",
		"SET n 5\nNEW.CMD k n 9 x\nINCR x": "0/k:1 0/n:1 0/x:1", "NEW.CMD k n\nDEL k": "", "NEW.CMD\nNEW.CMD k\nSET k 1": "", "NEW.CMD a k\nRENAME k l\nDEL a": "0/l:0", "NEW.CMD a k\nRENAMENX k l\nDEL a": "0/k:0 0/l:0",
	} {
		s.DB.Select(0)
		s.DB.FlushAll()
		for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
			var no *state.UnsupportedError
			if args := servertest.Words(line); errors.As(Do(s, args), &no) {
				if _, err := Lose(s, args, fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []string
		s.DB.EachLost(func(db int, key, reason []byte) { got = append(got, fmt.Sprintf("%d/%s:%s", db, key, reason)) })
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: lost %q, want %q", log, s, want)
		}
	}
}

// form is a record without an expiry.
func form(typ string, list ...string) string { return redistest.Form(typ, 0, list) }

// TestDone runs commands that the server of the other tests does not know, or that random tests rarely reach,
// and compares the keys.
func TestDone(t *testing.T) {
	ms := func(d time.Duration) string { return fmt.Sprint(servertest.Now.Add(d).UnixMilli()) }
	soon := func(name string, d time.Duration) string { return name + "@" + ms(d) }
	for _, x := range []struct {
		lines string
		want  map[string]string
	}{
		{"HSET h a 1 b 2 c 3\nHEXPIRE h 100000000 FIELDS 2 a b\nHPEXPIRE h 100000000000 NX FIELDS 1 c\nHPERSIST h FIELDS 2 b no\nHEXPIREAT h 9999999999 GT FIELDS 1 c\nHPEXPIREAT h 1 XX FIELDS 1 b",
			map[string]string{"h": form("hash", soon("a=1", 1e8*time.Second), "b=2", "c=3@9999999999000")}},
		{"HSET h a 1 b 2\nHGETDEL h FIELDS 1 a\nHGETDEL no FIELDS 1 a\nHGETEX h PXAT 9999999999000 FIELDS 1 b\nHGETEX h FIELDS 1 b", map[string]string{"h": form("hash", "b=2@9999999999000")}},
		{"HSETEX h EX 100000000 FIELDS 2 a 1 b 2\nHSETEX h KEEPTTL FIELDS 1 a 3\nHSETEX h FNX FIELDS 1 a 9\nHSETEX h FXX FIELDS 1 no 9\nHSETEX h FXX FIELDS 1 b 4\nHGETEX h PERSIST FIELDS 1 b",
			map[string]string{"h": form("hash", soon("a=3", 1e8*time.Second), "b=4")}},
		{"HSETNX h a 1\nHSETNX h a 2\nHINCRBY h n 7\nHDEL no a\nHDEL h a no\nHSET gone f v\nHDEL gone f", map[string]string{"h": form("hash", "n=7")}},
		{"SET a 1\nSET a 2 NX\nSET b 1 XX\nSET a 3 IFEQ 2\nSET a 4 IFEQ 1\nSET a 5 XX GET\nSET e v EXAT 9999999999\nSET e w KEEPTTL\nSETEX x 100000000 v\nPSETEX y 100000000000 v",
			map[string]string{"a": form("string", "5"), "e": redistest.Form("string", 9999999999000, []string{"w"}),
				"x": redistest.Form("string", servertest.Now.Add(1e8*time.Second).UnixMilli(), []string{"v"}), "y": redistest.Form("string", servertest.Now.Add(1e8*time.Second).UnixMilli(), []string{"v"})}},
		{"SET a v\nEXPIRE a 100000000\nPERSIST a\nEXPIRE no 1\nPEXPIRE a 5 GT\nSET b v\nGETEX b PXAT 9999999999000\nGETEX b\nGETEX no PERSIST\nGETEX b PERSIST\nGETDEL a\nMSETNX b 1 c 2\nMSETNX d 1 e 2",
			map[string]string{"b": form("string", "v"), "d": form("string", "1"), "e": form("string", "2")}},
		{"SELECT 2\nSET a v\nSWAPDB 0 2\nSELECT 0\nCOPY a b DB 1\nMOVE a 1\nMOVE no 1\nSELECT 1\nFLUSHDB\nSELECT 0\nSET c v\nRENAMENX c d\nRENAMENX d d", map[string]string{"d": form("string", "v")}},
		{"SET {a}1 x\nSET {b}1 x\nSET {b}2 x\nSET {c} x\nSELECT 3\nSET a x\nSELECT 0\nCLUSTER FLUSHSLOT 15495 SYNC\nTRIMSLOTS RANGES 2 0 0 3000 3300", map[string]string{"{c}": form("string", "x")}},
		{"SET a v\nFLUSHALL\nPING\nPUBLISH a b\nXGROUP HELP", map[string]string{}},
		{"ZADD g 3479099956230698 Palermo 3479447370796909 Catania\nGEORADIUSBYMEMBER g Palermo 200 km STORE k\nGEORADIUS g 15 37 1 km STORE none\nGEORADIUS g 15 37 200 mi\nGEORADIUS no 15 37 1 ft STORE none\n" +
			"GEOSEARCHSTORE box g FROMMEMBER Catania BYBOX 100 100 km DESC COUNT 1\nDEL g",
			map[string]string{"k": form("zset", "Catania=3.479447370796909e+15", "Palermo=3.479099956230698e+15"), "box": form("zset", "Catania=3.479447370796909e+15")}},
		{"RPUSH l 3 1 2\nSET w1 9\nSET w2 8\nSET w3 7\nHSET h1 f x\nSORT l BY w* STORE k\nSORT l DESC LIMIT 1 5 GET w* GET h*->f GET # GET no STORE m\nSORT no STORE none\nSORT l BY no DESC STORE n\nDEL l w1 w2 w3 h1",
			map[string]string{"k": form("list", "3", "2", "1"), "m": form("list", "8", "", "2", "", "9", "x", "1", ""), "n": form("list", "2", "1", "3")}},
		{"RPUSH l a b c\nLPUSH l z\nRPUSHX l d\nRPUSHX none d\nLINSERT l BEFORE b x\nLINSERT l AFTER d y\nLINSERT l AFTER none y\nLPOP l\nRPOP l 1\nRPOPLPUSH l m\nLMOVE l l LEFT RIGHT\nLMOVE l m RIGHT LEFT\nLTRIM l 0 -1",
			map[string]string{"l": form("list", "x", "b", "c"), "m": form("list", "a", "d")}},
		{"RPUSH l a b a c a\nLREM l 1 a\nLREM l -1 a\nLREM l 0 none\nRPUSH all a a\nLREM all 0 a\nLSET l -1 z\nLTRIM l -2 5\nRPUSH gone a b\nLTRIM gone 5 9\nLPOP none", map[string]string{"l": form("list", "a", "z")}},
		{"SADD a 1 2 3\nSADD b 2 3 4\nSADD c 3\nSUNIONSTORE u a b none\nSINTERSTORE i a b c\nSINTERSTORE n a none\nSDIFFSTORE d a c none\nDEL a b c",
			map[string]string{"u": form("set", "1", "2", "3", "4"), "i": form("set", "3"), "d": form("set", "1", "2")}},
		{"ZADD z 1 a 2 b 3 c 4 d\nZADD z NX 9 a\nZADD z XX 5 a 1 none\nZADD z GT 1 b\nZADD z LT CH 1 b\nZADD z INCR 2 c\nZINCRBY z -1 d\nZADD z 1 e\nZREM z e none\nZADD nothing XX 1 a",
			map[string]string{"z": form("zset", "a=5", "b=1", "c=5", "d=3")}},
		{"ZADD z 1 a 2 b 3 c 4 d 5 e 6 f\nZPOPMIN z\nZPOPMAX z 2\nZREMRANGEBYRANK z -1 -1\nZREMRANGEBYSCORE z (2 3\nZREMRANGEBYSCORE none 0 1\nZPOPMIN none\nZADD y 0 a 0 b 0 c 0 d\nZREMRANGEBYLEX y [b (d\nZREMRANGEBYLEX y + -",
			map[string]string{"z": form("zset", "b=2"), "y": form("zset", "a=0", "d=0")}},
		{"ZADD a 1 x 2 y inf i\nZADD b 10 y 20 z -inf i\nSADD s x y\nZUNIONSTORE u 3 a b none WEIGHTS 2 1 1\nZUNIONSTORE m 2 a b AGGREGATE MAX\nZINTERSTORE i 2 a s\nZINTERSTORE n 3 a b s AGGREGATE MIN\nZINTERSTORE no 2 a none\nZDIFFSTORE d 2 b s\nDEL a b s",
			map[string]string{"u": form("zset", "i=0", "x=2", "y=14", "z=20"), "m": form("zset", "i=+Inf", "x=1", "y=10", "z=20"), "i": form("zset", "x=2", "y=3"), "n": form("zset", "y=1"), "d": form("zset", "i=-Inf", "z=20")}},
		{"ZADD z 1 a 2 b 3 c 4 d\nZADD y 0 a 0 b 0 c\nZRANGESTORE r z 1 -2\nZRANGESTORE v z 0 0 REV\nZRANGESTORE s z (1 +inf BYSCORE LIMIT 1 1\nZRANGESTORE x z 3 -inf BYSCORE REV LIMIT 0 2\nZRANGESTORE l y [b + BYLEX\nZRANGESTORE n z 0 -1 BYSCORE\nZRANGESTORE none no 0 1\nDEL z y",
			map[string]string{"r": form("zset", "b=2", "c=3"), "v": form("zset", "d=4"), "s": form("zset", "c=3"), "x": form("zset", "b=2", "c=3"), "l": form("zset", "b=0", "c=0")}},
		{"SETNX a 1\nSETNX a 2\nAPPEND a 23\nINCR a\nDECRBY a 4\nINCRBY new 7\nAPPEND b x\nSETRANGE b 3 y\nGETSET c v\nSET e 5 PXAT 9999999999000\nDECR e\nMSET x 1 y 2",
			map[string]string{"a": form("string", "120"), "new": form("string", "7"), "b": form("string", "x\x00\x00y"), "c": form("string", "v"), "e": redistest.Form("string", 9999999999000, []string{"4"}), "x": form("string", "1"), "y": form("string", "2")}},
		{"ZADD g 3479099956230698 Palermo 3479447370796909 Catania 1e300 far\nGEOSEARCHSTORE k g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 ASC\nGEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 DESC\nDEL g",
			map[string]string{"k": form("zset", "Catania=3.479447370796909e+15"), "d": form("zset", "Palermo=3.479099956230698e+15")}},
		{"RPUSH l b a c\nSET wb 2\nSET wa 1\nSORT l BY w* ALPHA STORE k\nSADD t b a\nSORT t BY no STORE m\nZADD z 2 a 1 b\nSORT z BY no DESC STORE n\nDEL l t z wa wb", map[string]string{"k": form("list", "c", "a", "b"), "m": form("list", "a", "b"), "n": form("list", "a", "b")}},
		{"RPUSH a 1 2 3 4 5 6\nLMOVEM a b LEFT LEFT COUNT 2 OBO\nLMOVEM a c RIGHT LEFT EXACTLY 2 BULK\nLMOVEM a no LEFT LEFT EXACTLY 9 BULK\nLMOVEM none no LEFT LEFT COUNT 1 OBO\nBLMOVEM a d LEFT RIGHT 0 COUNT 9 BULK",
			map[string]string{"b": form("list", "2", "1"), "c": form("list", "5", "6"), "d": form("list", "3", "4")}},
		{"RPUSH s a b c\nLMOVEM s s LEFT LEFT EXACTLY 2 OBO\nRPUSH n a b c\nLMOVEM n n RIGHT RIGHT COUNT 2 BULK\nRPUSH r a b c\nLMOVEM r q RIGHT RIGHT COUNT 2 OBO\nLMOVEM r q LEFT LEFT",
			map[string]string{"s": form("list", "b", "a", "c"), "n": form("list", "a", "b", "c"), "q": form("list", "a", "c", "b")}},
		{"ZADD a 1 x 2 y 3 z\nZADD b 9 x\nZMOVE a b MIN\nZMOVE a c MAX COUNT 5\nZMOVE b b MIN\nZMOVE none b MIN\nBZMOVE c d MAX 0\nZMOVE c e BYSCORE (1 2",
			map[string]string{"b": form("zset", "x=1"), "d": form("zset", "z=3"), "e": form("zset", "y=2")}},
		{"ZADD a 1 x 2 y 3 z 4 w\nZADD b 9 x\nZMOVEMEMBER a b NX MEMBERS 3 x y no\nZMOVEMEMBER a b XX MEMBERS 2 x z\nZMOVEMEMBER a c MEMBERS 2 z z\nZMOVEMEMBER a no XX MEMBERS 1 w",
			map[string]string{"a": form("zset", "w=4"), "b": form("zset", "x=1", "y=2"), "c": form("zset", "z=3")}},
		{"SET a 1\nSELECT 1\nSET a 2\nSET b 2\nMOVE a 0\nMOVE b 0 replace\nMOVE a 0 REPLACE", map[string]string{"a": form("string", "2"), "b": form("string", "2")}},
		{"FUNCTION FLUSH\nSADD t a b c\nSMOVE t u a\nSMOVE t u no\nSMOVE t t b\nSREM t c no\nSREM no a", map[string]string{"t": form("set", "b"), "u": form("set", "a")}},
	} {
		got := servertest.Contents(t, made(t, x.lines))
		want := map[string]string{}
		for k, v := range x.want {
			want["0/"+k] = v
		}
		for _, d := range redistest.Diff(want, got, 9) {
			t.Errorf("%s:\n%s", x.lines, d)
		}
	}
}

// TestNear: distances are stored, with a report that their last bits may differ.
func TestNear(t *testing.T) {
	s := made(t, "ZADD g 3479099956230698 Palermo 3479447370796909 Catania")
	var near *state.UnsupportedError
	if err := Do(s, servertest.Words("GEORADIUSBYMEMBER g Palermo 200 km STOREDIST k")); !errors.As(err, &near) || !near.Near {
		t.Error(err)
	}
	if got := servertest.Contents(t, s)["0/k"]; !strings.Contains(got, "Catania=166.27") || !strings.Contains(got, "Palermo=0") {
		t.Error(got)
	}
}

// TestProducers: what a stream remembers of idempotent producers is told, and changes nothing.
func TestProducers(t *testing.T) {
	for _, command := range []string{"XCFGSET x IDMP-DURATION 5", "XIDMPRECORD x p m 1-1"} {
		var near *state.UnsupportedError
		if err := Do(made(t, "XADD x 1-1 f v"), servertest.Words(command)); !errors.As(err, &near) || !near.Near {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestLateFields: Valkey takes any expiry of a field, Redis none from 2^46 ms on: it is kept, and told.
func TestLateFields(t *testing.T) {
	for _, ms := range []int64{1<<46 - 1, 1 << 46} {
		for _, command := range []string{"HPEXPIREAT h %d FIELDS 1 f", "HGETEX h PXAT %d FIELDS 1 f", "HSETEX h PXAT %d FIELDS 1 f v"} {
			s := made(t, "HSET h f v g w")
			var near *state.UnsupportedError
			if err := Do(s, servertest.Words(fmt.Sprintf(command, ms))); errors.As(err, &near) != (ms == 1<<46) || near != nil && !near.Near {
				t.Errorf("%s: %v", fmt.Sprintf(command, ms), err)
			}
			if got := servertest.Contents(t, s)["0/h"]; !strings.Contains(got, fmt.Sprint(ms)) {
				t.Errorf("%s: %s", fmt.Sprintf(command, ms), got)
			}
		}
	}
}

// TestFunctions: libraries come and go by commands.
func TestFunctions(t *testing.T) {
	s := made(t, "PING")
	do := func(args ...string) {
		t.Helper()
		if err := Do(s, bytesOf(append([]string{"function"}, args...))); err != nil {
			t.Error(err)
		}
	}
	do("LOAD", "#!lua name=b\n1")
	do("LOAD", "#!lua name=a\n1")
	do("LOAD", "replace", "#!lua name=b\n2")
	if got := s.Functions(); len(got) != 2 || string(got[1]) != "#!lua name=b\n2" {
		t.Errorf("%q", got)
	}
	if do("DELETE", "a"); len(s.Functions()) != 1 {
		t.Error("a library is there that was deleted")
	}
	if do("flush"); len(s.Functions()) != 0 {
		t.Error("there are libraries after a flush")
	}
}

// TestRestore: RESTORE stores the value of its payload, under the given name and with the given expiry.
func TestRestore(t *testing.T) {
	s := servertest.New(t)
	s.Restore = func(payload []byte, begin func(*record.Header) *state.Put) error {
		if string(payload) != "payload" {
			return errors.New("damaged")
		}
		return begin(&record.Header{Type: record.List, Key: []byte("k"), ExpireMS: 5}).Write([]record.Element{{Value: []byte("a")}, {Value: []byte("b")}})
	}
	for _, line := range []string{"RESTORE k 0 payload", "SET replaced old", "RESTORE replaced 0 payload REPLACE IDLETIME 5", "RESTORE absolute 9999999999000 payload ABSTTL",
		"RESTORE relative 1000000000000 payload FREQ 1"} {
		if err := Do(s, servertest.Words(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"RESTORE k 0 payload", "RESTORE k -1 payload", "RESTORE k 0 broken REPLACE", "RESTORE r 0 payload x", "RESTORE r 0 payload FREQ 256", "RESTORE r 0 payload IDLETIME 1 FREQ 1", "RESTORE r x payload"} {
		var reply *argument.ReplyError
		if err := Do(s, servertest.Words(line)); !errors.As(err, &reply) {
			t.Errorf("%s: %v", line, err)
		}
	}
	with := func(expire int64) string { return redistest.Form("list", expire, []string{"a", "b"}) }
	want := map[string]string{"0/k": with(0), "0/replaced": with(0), "0/absolute": with(9_999_999_999_000), "0/relative": with(servertest.Now.UnixMilli() + 1e12)}
	for _, d := range redistest.Diff(want, servertest.Contents(t, s), 9) {
		t.Error(d)
	}
}
