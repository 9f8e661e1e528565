package live

import (
	"context"
	"path/filepath"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/store"
)

// TestHeld: a file has the same losses as the server, and the server is not written.
func TestHeld(t *testing.T) {
	s := redistest.Start(t)
	f, err := New().With(new(format.ServerOptions)).(*Format).Held("redis://"+s.Addr, true)
	if err != nil {
		t.Fatal(err)
	}
	target, err := f.Create(context.Background(), filepath.Join(t.TempDir(), "a.rdb"), &format.CreateOptions{DBs: []string{"0"},
		TempDir: t.TempDir(), Reopen: &format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	server := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	set := &record.Header{Type: record.Hash, Key: []byte("h")}
	of := func(to format.Target) (kinds []string) {
		lose := func(l record.Loss) { kinds = append(kinds, l.Kind) }
		to.ElementLosses(set, []record.Element{{Name: []byte("f"), ExpireMS: 1}}, lose)
		to.ElementLosses(&record.Header{Type: record.Other, Key: []byte("v")}, []record.Element{moduleValue(vectorSet)}, lose)
		for _, l := range to.Losses(&record.Header{Type: record.Other, Keyless: record.ModuleAux}) {
			lose(l)
		}
		return kinds
	}
	if got, want := of(target), of(server); len(want) < 2 || len(got) != len(want) || got[0] != want[0] {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := target.(format.Commanded).Orphans(), server.(format.Commanded).Orphans(); got != want {
		t.Errorf("orphans %d, want %d", got, want)
	}
	if err := load(context.Background(), target, data(10, 10), "0", 1); err != nil {
		t.Fatal(err)
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, want(t, data(10, 10), "0"), contents(t, src))
	target.Abort()
	if n := redistest.Text(s.Client().Must(t, "DBSIZE")); n != "0" {
		t.Errorf("%s keys on the server", n)
	}
}
