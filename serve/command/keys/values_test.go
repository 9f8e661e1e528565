package keys

import (
	"bytes"
	"fmt"
	"testing"

	"kvferry/internal/shared/argument"
)

func TestCommon(t *testing.T) {
	for _, tt := range [][3]string{{"ohmytext", "mynewtext", "mytext [{7 8 4} {3 1 2}]"}, {"", "a", " []"}, {"abc", "abc", "abc [{2 2 3}]"}, {"ab", "cd", " []"}} {
		seq, runs := commonSubsequence([]byte(tt[0]), []byte(tt[1]))
		if got := fmt.Sprint(string(seq), " ", runs); got != tt[2] {
			t.Errorf("%q: %s", tt, got)
		}
	}
}

// TestBitRanges uses the examples of Redis' documents.
func TestBitRanges(t *testing.T) {
	for _, tt := range []struct {
		text, args         string
		count, zeros, ones int64
	}{
		{"foobar", "", 26, 0, 1}, {"foobar", "1 1", 6, 8, 9}, {"foobar", "5 30 BIT", 17, 7, 5}, {"foobar", "0 0 BYTE", 4, 0, 1},
		{"\xff\xff", "0 -1", 16, -1, 0}, {"\xff\xff", "", 16, 16, 0}, {"\x00", "-3 -5", 0, 0, -1}, {"\x00\x00\x01", "3 22 BIT", 0, 3, -1},
	} {
		var r bitRange
		if err := r.Read(bytes.Fields([]byte(tt.args)), false); err != nil {
			t.Error(err)
		}
		b := []byte(tt.text)
		if count, zeros, ones := r.Count(b), r.Find(b, 0), r.Find(b, 1); count != tt.count || zeros != tt.zeros || ones != tt.ones {
			t.Errorf("%q %s: %d, %d, %d", tt.text, tt.args, count, zeros, ones)
		}
	}
	var empty bitRange // BITCOUNT of Redis 7.0 looks at the unit last
	if err := empty.Read(bytes.Fields([]byte("-1 -3 none")), false); err != nil || empty.Count([]byte("\xff")) != 0 {
		t.Errorf("an empty range: %v", err)
	}
	for _, args := range []string{"1", "x 1", "1 x", "1 2 NIBBLE", "1 2 BIT 3", "-3 -1 none"} {
		if err := new(bitRange).Read(bytes.Fields([]byte(args)), false); err == nil {
			t.Error(args)
		}
	}
}

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		args string
		want int64
	}{{"GET u8 0", 0xfe}, {"get i8 0", -2}, {"GET u4 #1", 0xe}, {"GET i64 1000", 0}, {"GET u63 0", 0x7f00000000000000}} {
		ops, err := argument.ParseBitOps(bytes.Fields([]byte(tt.args)))
		if err != nil || len(ops) != 1 {
			t.Fatal(tt.args, ops, err)
		}
		if got := bitField([]byte{0xfe}, &ops[0]); got != tt.want {
			t.Errorf("%s: %x", tt.args, got)
		}
	}
	if bitAt([]byte{1}, 7) != 1 || bitAt([]byte{1}, 8) != 0 {
		t.Error("zeros follow a string")
	}
}
