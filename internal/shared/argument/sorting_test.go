package argument

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"kvferry/record"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		args     string
		readOnly bool
		want     string
	}{
		{"", false, "by= get=[] 0 -1 desc=false alpha=false store="},
		{"by w* limit 1 2 get # get h*->f desc alpha store to", false, "by=w* get=[# h*->f] 1 2 desc=true alpha=true store=to"},
		{"desc asc", true, "by= get=[] 0 -1 desc=false alpha=false store="},
		{"store to", true, "unknown store"},
		{"get", false, "unknown get"},
		{"limit 1 x", false, ErrInteger.Error()},
	} {
		var o SortOptions
		err := o.Read(bytes.Fields([]byte(tt.args)), tt.readOnly, func(arg []byte) error { return fmt.Errorf("unknown %s", arg) })
		got := fmt.Sprintf("by=%s get=%s %d %d desc=%v alpha=%v store=%s", o.By, o.Gets, o.Offset, o.Count, o.Desc, o.Alpha,
			o.Store)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
}

func TestTarget(t *testing.T) {
	for _, tt := range [][4]string{{"w*", "1", "w1", ""}, {"w*x*", "1", "w1x*", ""}, {"h*->f", "1", "h1", "f"},
		{"h*->", "1", "h1->", ""}, {"h->*", "1", "h->1", ""}} {
		key, field, ok := SortTarget([]byte(tt[0]), []byte(tt[1]))
		if !ok || string(key) != tt[2] || string(field) != tt[3] {
			t.Errorf("%s: %s, %s, %v", tt[0], key, field, ok)
		}
	}
	if _, _, ok := SortTarget([]byte("w"), nil); ok {
		t.Error("a pattern needs a star")
	}
}

func TestWindow(t *testing.T) {
	for _, tt := range [][5]int64{{0, -1, 5, 0, 5}, {2, 2, 5, 2, 4}, {-3, 2, 5, 0, 2}, {9, 2, 5, 5, 5}, {1, 1 << 62, 5, 1, 5}} {
		o := SortOptions{Offset: tt[0], Count: tt[1]}
		if from, to := o.Window(tt[2]); from != tt[3] || to != tt[4] {
			t.Errorf("%v: %d, %d", tt, from, to)
		}
	}
	for by, want := range map[string]bool{"w*": false, "nosort": true} {
		if o := (&SortOptions{By: []byte(by)}); o.Unsorted() != want {
			t.Error(by)
		}
	}
}

// TestRepeatedBy: of several patterns the last counts, but one without a star outweighs all.
func TestRepeatedBy(t *testing.T) {
	for line, want := range map[string]string{"BY w* BY x*": "x*", "BY nosort BY w*": "nosort", "BY w* BY nosort": "nosort"} {
		var o SortOptions
		if err := o.Read(bytes.Fields([]byte(line)), false, nil); err != nil || string(o.By) != want {
			t.Errorf("%s: %s, %v", line, o.By, err)
		}
	}
}

func TestScore(t *testing.T) {
	for in, want := range map[string]float64{"": 0, " 1.5": 1.5, "-2\x00x": -2} {
		rank, _, err := new(SortOptions).Rank(nil, []byte(in), true)
		if rank != record.RankScore(want) || err != nil {
			t.Errorf("%q: %d, %v", in, rank, err)
		}
	}
	for there, want := range map[bool]string{true: "1 weight", false: "0 "} {
		o := SortOptions{Alpha: true}
		rank, then, err := o.Rank([]byte("element"), []byte("weight"), there)
		if fmt.Sprintf("%d %s", rank, then) != want || err != nil {
			t.Errorf("texts: %d %s, %v, want %s", rank, then, err, want)
		}
	}
	for _, in := range []string{"x", " ", "\n\x001"} {
		if _, _, err := new(SortOptions).Rank(nil, []byte(in), true); err == nil || !strings.Contains(err.Error(), "double") {
			t.Errorf("%q: %v", in, err)
		}
	}
}
