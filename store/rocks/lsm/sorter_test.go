package lsm

import (
	"testing"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// TestSorterLeavesOut: keys that are left out are not in the spool, at any sequence number.
func TestSorterLeavesOut(t *testing.T) {
	ks := New(&Env{Memory: 1 << 20, Report: func(record.Finding) {}}, "default", &store.Bytewise)
	s := NewSorter(ks, 1<<20)
	defer s.Close()
	var asked []string
	s.LeaveOut = func(user []byte) bool {
		asked = append(asked, string(user))
		return string(user) == "b"
	}
	for i, key := range []string{"c", "b", "a", "b"} {
		if err := s.Add([]byte(key), base.Trailer(uint64(i), base.KindPut), []byte("v"), Origin{}); err != nil {
			t.Fatal(err)
		}
	}
	tab, err := s.Spool(-1, []string{"log"}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCursor(ks, []*Table{tab}, nil)
	defer c.Close()
	got := ""
	for c.Next() {
		got += string(c.User())
	}
	if got != "ac" || c.Err != nil || len(asked) != 4 {
		t.Errorf("rows %s, %v; asked for %q", got, c.Err, asked)
	}
	if c.Seek([]byte("a")) {
		t.Error("a cursor at its end moves on")
	}
}
