package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"kvferry/cmd/kvferry/command"
)

func TestMain(m *testing.M) {
	if os.Getenv(asKvferry) != "" {
		os.Exit(command.Main(command.Build{Version: "faults"}))
	}
	os.Exit(m.Run())
}

// TestShort is the short form of make faults.
func TestShort(t *testing.T) {
	o := options{seed: 1, span: 5 * time.Minute, files: "*", short: true}
	if wrong, err := o.run(); wrong > 0 || err != nil {
		t.Errorf("%d wrong: %v", wrong, err)
	}
}

// TestJudge: exactly the silent errors are failures.
func TestJudge(t *testing.T) {
	lines := func(text string) (s sums) {
		s.Write([]byte(text))
		return s
	}
	sound := &outcome{sum: lines("a\nb\n"), told: map[string]int64{"torn-log": 1}}
	for _, c := range []struct {
		name, want string
		got        outcome
		nature     string
		wrong      int
	}{
		{"the same in another order", "right", outcome{sum: lines("b\na\n")}, "", 0},
		{"a line less", "wrong and silent", outcome{sum: lines("a\n")}, "", 1},
		{"another line", "wrong and silent", outcome{sum: lines("a\nc\n"), told: map[string]int64{"torn-log": 1}}, "", 1},
		{"one more warning", "warned", outcome{sum: lines("a\n"), told: map[string]int64{"torn-log": 2}}, "", 0},
		{"an error", "refused or reported", outcome{code: 3}, "", 0},
		{"not to be known", "undetectable: " + byLMDB, outcome{}, byLMDB, 0},
		{"a panic", "panicked", outcome{panic: "x"}, "", 1},
		{"no end", "hung", outcome{slow: true}, "", 1},
	} {
		k := class{counts: map[string]int{}}
		k.compareOutcomes("dump", &c.got, sound, c.name, func() string { return c.nature })
		if k.counts[c.want] != 1 || len(k.wrong) != c.wrong {
			t.Errorf("%s: %v, %q", c.name, k.counts, k.wrong)
		}
	}
}

func TestRecordEnds(t *testing.T) {
	var log []byte
	add := func(kind byte, n int) {
		log = append(binary.LittleEndian.AppendUint16(append(log, 0, 0, 0, 0), uint16(n)), kind)
		log = append(log, make([]byte, n)...)
	}
	add(1, 10)                        // to 17
	add(2, 32<<10-17-7)               // fills the block
	add(4, 5)                         // to 32 KiB + 12
	add(1, 32<<10-12-7-3)             // leaves 3 bytes
	log = append(log, 0, 0, 0)        // which hold nothing
	add(5, 9)                         // recycled: four bytes more
	log = append(log, 1, 2, 3, 4)     // belong to it
	log = append(log, 0, 0, 0, 0, 99) // the begin of one
	want := []int{17, 32<<10 + 12, 64<<10 - 3, 64<<10 + 20}
	if got := recordEnds(log); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestWrites: a write is known by its first fragment.
func TestWrites(t *testing.T) {
	var log []byte
	add := func(kind byte, payload string) {
		log = append(binary.LittleEndian.AppendUint16(append(log, 0, 0, 0, 0), uint16(len(payload))), kind)
		if kind >= 5 {
			log = append(log, 1, 2, 3, 4)
		}
		log = append(log, payload...)
	}
	add(1, "number 1 and2 and more")
	add(2, "number 2 and1 begins")
	add(4, "and this is its end")
	add(5, "number 3 and7")
	add(1, "no write")
	var got []string
	for _, w := range writes(log) {
		got = append(got, string(w[:]))
	}
	if want := []string{"number 1 and", "number 2 and", "number 3 and"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOtherPieces: only middle fragments of a record may change places unnoticed.
func TestOtherPieces(t *testing.T) {
	const block = 32 << 10
	piece := func(kind byte, fill byte) []byte {
		b := bytes.Repeat([]byte{fill}, block)
		n := block - 7
		if kind >= 5 {
			n = block - 11
		}
		binary.LittleEndian.PutUint16(b[4:], uint16(n))
		b[6] = kind
		return b
	}
	log := func(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }
	first, x, y, last := piece(2, 1), piece(3, 2), piece(3, 3), piece(4, 4)
	end := []byte("the end")
	for name, c := range map[string]struct {
		a, b []byte
		want bool
	}{
		"exchanged":     {log(first, x, y, last, end), log(first, y, x, last, end), true},
		"copied":        {log(first, x, y, last), log(first, x, x, last), true},
		"recycled":      {log(piece(7, 1), piece(7, 2)), log(piece(7, 2), piece(7, 1)), true},
		"with the last": {log(first, x, y, last), log(first, x, last, y), false},
		"the end":       {log(first, x, end), log(first, x, []byte("the and")), false},
		"not whole":     {log(first, x[:block-1]), log(first, y[:block-1]), false},
	} {
		if got := otherPieces(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	short := piece(3, 2)
	binary.LittleEndian.PutUint16(short[4:], 9)
	if otherPieces(log(x, y), log(x, short)) {
		t.Error("a block with something after the piece is no whole one")
	}
}
