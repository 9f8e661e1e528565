package state

import (
	"fmt"
	"testing"

	"kvferry/internal/shared/keyslot"
)

// TestParseWriter: the fields of an RDB part that name a server, and what follows from its version.
func TestParseWriter(t *testing.T) {
	for _, c := range []struct {
		field, value, name string
		known, unsummed    bool
	}{
		{"redis-ver", "6.0.16", "Redis 6.0", true, false}, {"redis-ver", "8.2.0", "Redis 8.2", true, false}, {"redis-ver", "8.4.0", "Redis 8.4", true, true},
		{"redis-ver", "8.6.3", "Redis 8.6", true, true}, {"redis-ver", "8.8.0", "Redis 8.8", false, true}, {"valkey-ver", "8.1.1", "Valkey 8.1", true, false},
		{"valkey-ver", "9.1.2", "Valkey 9.1", true, false}, {"valkey-ver", "9.2.0", "Valkey 9.2", false, true},
		{"redis-ver", "8", "", false, false}, {"redis-ver", "x.1", "", false, false}, {"redis-ver", "7.x", "", false, false}, {"redis-ver", "0.9", "", false, false},
		{"used-mem", "7.0", "", false, false},
	} {
		w, ok := ParseWriter(c.field, c.value)
		if !ok {
			if c.name != "" {
				t.Errorf("%s %s names no server", c.field, c.value)
			}
			continue
		}
		if w.String() != c.name || w.Known() != c.known || w.TakesUnsummed() != c.unsummed {
			t.Errorf("%s %s: %s, known %t, restores payloads without checksum %t: want %+v", c.field, c.value, w, w.Known(), w.TakesUnsummed(), c)
		}
	}
	if w := (Writer{}); w.Known() || !w.TakesUnsummed() {
		t.Error("an unknown server is known")
	}
}

// TestWrote: a command that only a newer server has raises the version of the writer.
func TestWrote(t *testing.T) {
	redis := func(major, minor int) Writer { return Writer{Major: major, Minor: minor} }
	valkey := func(major, minor int) Writer { return Writer{true, major, minor} }
	for _, c := range []struct {
		was   Writer
		since []Writer
		want  Writer
	}{
		{redis(7, 0), nil, redis(7, 0)}, {redis(7, 0), []Writer{redis(6, 2)}, redis(7, 0)}, {redis(7, 0), []Writer{redis(8, 4)}, redis(8, 4)},
		{redis(7, 0), []Writer{valkey(9, 0), redis(8, 0)}, redis(8, 0)}, {valkey(9, 1), []Writer{valkey(9, 0), redis(8, 10)}, valkey(9, 1)},
		{redis(7, 2), []Writer{valkey(8, 1)}, valkey(8, 1)}, {Writer{}, []Writer{redis(8, 4)}, Writer{}},
	} {
		w := c.was
		if w.Wrote(c.since); w != c.want {
			t.Errorf("%s after a command of %v: %s, want %s", c.was, c.since, w, c.want)
		}
	}
}

// TestImport: a failed import removes the keys of its slots, and no import outlasts its end.
func TestImport(t *testing.T) {
	db, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{DB: db}
	db.SetString([]byte("{a}1"), []byte("v"), 0)
	db.SetString([]byte("{b}1"), []byte("v"), 0)
	slot := uint64(keyslot.Of([]byte("a")))
	for _, failed := range []bool{false, true} {
		s.Import("job", keyslot.Ranges{{slot, slot}})
		if s.EndImport("job", failed); len(s.Imports) != 0 || db.Find([]byte("{b}1")) == nil || (db.Find([]byte("{a}1")) == nil) != failed {
			t.Errorf("failed %t: imports %v, key of the slot %v", failed, s.Imports, db.Find([]byte("{a}1")))
		}
	}
	s.EndImport("none", true)
}

// TestSince: commands up to Redis 7.2 are in all servers; later ones came with a version of either.
func TestSince(t *testing.T) {
	for in, want := range map[[2]string]string{{"2.0.0", ""}: "[]", {"7.2.0", ""}: "[]", {"", ""}: "[]", {"7.4.0", "9.0"}: "[Redis 7.4 Valkey 9.0]",
		{"8.10", ""}: "[Redis 8.10]", {"", "9.0"}: "[Valkey 9.0]"} {
		if got := fmt.Sprint(Since(in[0], in[1])); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
