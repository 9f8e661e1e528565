package commands

import (
	"errors"
	"strings"
	"testing"

	"kvferry/internal/shared/argument"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/servertest"
	"kvferry/record"
	"kvferry/redis/state"
)

// do runs a command, including some of other packages that tests need.
func do(s *state.Server, a [][]byte) error {
	switch string(a[0]) {
	case "SET":
		s.DB.SetString(a[1], a[2], 0)
		return nil
	case "DEL":
		for _, key := range a[1:] {
			s.DB.Remove(key)
		}
		return nil
	case "SADD":
		v := s.DB.Make(record.Set)
		v.AddMember(a[2])
		s.DB.Store(a[1], v)
		return nil
	}
	return map[string]func(*state.Server, [][]byte) error{
		"SETBIT": cmdSetbit, "BITOP": cmdBitop, "BITFIELD": cmdBitfield, "PFADD": cmdPfadd, "PFMERGE": cmdPfmerge, "PFCOUNT": cmdPfcount,
	}[string(a[0])](s, a)
}

func madeBits(t *testing.T, lines string) *state.Server { return servertest.Made(t, do, lines) }

const someBits = "SET s abc\nSADD h f\nSET bad HYLL\nSET runs HYLL" + "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"

// TestBitsRefused: commands that a server refuses, and commands of unknown effect, change no keys.
func TestBitsRefused(t *testing.T) {
	s := madeBits(t, someBits)
	const wrongType, syntax, integer = "WRONGTYPE", "syntax error", "not an integer"
	for line, want := range map[string]string{
		"SETBIT s -1 1": "bit offset", "SETBIT s 0 2": "bit is not", "SETBIT h 0 1": wrongType, "BITOP WHAT k s": "does not know this operation",
		"BITOP NOT k s s": "single source", "BITOP DIFF k s": "multiple source", "BITOP OR k h": wrongType, "BITFIELD h SET u8 0 1": wrongType,
		"BITFIELD s GET u8 x": "bit offset", "BITFIELD s OVERFLOW NO": "Invalid OVERFLOW", "BITFIELD s SET u64 0 1": "bitfield type", "BITFIELD s SET q8 0 1": "bitfield type",
		"BITFIELD s SET u8 -1 1": "bit offset", "BITFIELD s SET i64 #67108864 1": "longer than", "BITFIELD s SET u8 99999999999 1": "longer than", "SETBIT s 4294967296 1": "longer than", "SETBIT s 4294967296 2": "bit is not", "BITFIELD s GET u8 99999999999": "", "BITFIELD s SET u8 0 x": integer, "BITFIELD s WHAT": syntax,

		"PFADD h a": wrongType, "PFADD s a": "not a valid HyperLogLog", "PFADD bad a": "not a valid", "PFADD runs a b c d": "damaged", "PFMERGE k runs": "damaged",
		"PFMERGE h p": wrongType, "PFMERGE s p": "not a valid", "PFCOUNT s": "not a valid",
		"PFCOUNT s bad": "not a valid", "PFCOUNT p runs": "Corrupted", "PFCOUNT runs": "",
	} {
		err := do(s, servertest.Words(line))
		var reply *argument.ReplyError
		var no *state.UnsupportedError
		if want != "" && !errors.As(err, &reply) && !errors.As(err, &no) || !strings.Contains(errText(err), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, d := range redistest.Diff(servertest.Contents(t, madeBits(t, someBits)), servertest.Contents(t, s), 9) {
		t.Error("changed: " + d)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestBitsDone runs commands and compares the keys.
func TestBitsDone(t *testing.T) {
	for _, x := range []struct {
		lines string
		want  map[string]string
	}{
		{"SET a \x0f\x0f\nSET b \x05\nBITOP DIFF d a b\nBITOP DIFF1 e a b\nBITOP ANDOR f a b\nBITOP ONE g a b b\nBITOP AND gone no nope\nDEL a b",
			map[string]string{"d": form("string", "\x0a\x0f"), "e": form("string", "\x00\x00"), "f": form("string", "\x05\x00"), "g": form("string", "\x0a\x0f")}},
		{"SETBIT a 1 1\nSETBIT a 9 1\nSETBIT a 1 0\nSET x \x0f\nSET y \x33w\nBITOP AND and x y\nBITOP OR or x y\nBITOP XOR xor x y\nBITOP NOT not x\nDEL x y",
			map[string]string{"a": form("string", "\x00\x40"), "and": form("string", "\x03\x00"), "or": form("string", "\x3fw"), "xor": form("string", "\x3cw"), "not": form("string", "\xf0")}},
		{"BITFIELD a SET u8 0 65 INCRBY u8 0 1 SET u8 #1 300 GET u4 0\nBITFIELD b OVERFLOW SAT INCRBY u8 0 300 INCRBY i8 8 127 INCRBY i8 8 1 INCRBY u8 16 -1 SET i8 24 -200\nBITFIELD c OVERFLOW FAIL SET u4 0 15 INCRBY u4 0 1 SET i4 4 9 OVERFLOW WRAP INCRBY i4 4 9\nBITFIELD none GET u8 0",
			map[string]string{"a": form("string", "B\x2c"), "b": form("string", "\xff\x7f\x00\x80"), "c": form("string", "\xf9")}},
	} {
		want := map[string]string{}
		for k, v := range x.want {
			want["0/"+k] = v
		}
		for _, d := range redistest.Diff(want, servertest.Contents(t, madeBits(t, x.lines)), 9) {
			t.Errorf("%s:\n%s", x.lines, d)
		}
	}
}

// TestHyperLogLogs counts elements, merges sketches, and checks that a count is cached until an element
// changes it.
func TestHyperLogLogs(t *testing.T) {
	s := madeBits(t, "PFADD a x y\nPFADD b y z\nPFADD b\nPFADD empty\nPFMERGE all a b none\nPFMERGE a\nPFADD all x\nPFCOUNT all\nPFCOUNT a b\nPFCOUNT none")
	head := func(key string) string { return string(s.DB.Find([]byte(key)).Content()[:16]) }
	const stale = "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"
	if got := head("all"); got != "HYLL\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("three elements are counted, and cached: %x", got)
	}
	if got := head("b"); got != stale {
		t.Errorf("not counted: %x", got)
	}
	if err := do(s, servertest.Words("PFADD all new")); err != nil || head("all")[15] != 0x80 {
		t.Errorf("%x, %v", head("all"), err)
	}
	if s.DB.SetString([]byte("b"), []byte("HYLL\x00"+stale[5:]+strings.Repeat("\x00", 12288)), 9_999_999_999_000); do(s, servertest.Words("PFMERGE b a")) != nil {
		t.Error("sparse and dense are not merged")
	}
	if v := s.DB.Find([]byte("b")); v.Len() != 12304 || v.ExpireMS == 0 {
		t.Errorf("%d bytes, expiry %d", v.Len(), v.ExpireMS)
	}
}
