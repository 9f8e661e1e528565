package nemo_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/nemo"
	"kvferry/record"
)

// TestDeadListsOfAnySize: a deleted list comes back for any memory limit: one beyond the limit is read several
// times, with all its nodes.
func TestDeadListsOfAnySize(t *testing.T) {
	const nodes = 5000
	fs := memstore.New()
	dir := filepath.Join(t.TempDir(), "linked")
	l := fixtures.NewLinked(7, nodes)
	if err := l.Build(dir, fs.Create); err != nil {
		t.Fatal(err)
	}
	src, err := nemo.New().Open(context.Background(), dir, &format.OpenOptions{Store: fs.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h, err := record.Walk(l.Records()).Next()
	if err != nil {
		t.Fatal(err)
	}
	if !fs.Dir(filepath.Join(dir, "list")).Delete("default", nemo.AppendMetaKey(nil, 'L', h.Key)) {
		t.Fatalf("list %q has no meta row", h.Key)
	}
	want := formattest.Sum(t, l.Records())
	for _, memory := range []int64{0, 200 << 10, 16 << 10} {
		var told []string
		tell := func(key []byte, typ record.Type, what string) { told = append(told, typ.String()+" "+what) }
		e := &format.Env{Memory: memory, TempDir: t.TempDir()}
		r, err := formattest.Walk(src.(format.Undead).DeadRecords(context.Background(), "0", record.AllTypes, format.Span{}, e,
			tell))
		if err != nil {
			t.Fatal(err)
		}
		formattest.CheckEqual(t, formattest.Sum(t, r), want, true)
		if len(told) != 1 || !strings.HasPrefix(told[0], "list its meta row is gone") {
			t.Errorf("memory %d: told %q", memory, told)
		}
	}
}

// TestDeadListsWithHoles: from a deleted list with missing nodes, the nodes reachable from the ends come back,
// and the loss is reported.
func TestDeadListsWithHoles(t *testing.T) {
	for _, c := range []struct{ gone, want string }{{"", "123456789"}, {"4", "12356789"}, {"456", "123789"},
		{"1", "23456789"}, {"9", "12345678"}, {"3478", "12569"}} {
		for _, memory := range []int64{0, 400, 1} {
			m := newMemory(t).stores()
			m.nineNodes(c.gone)
			m.Store("list").Delete("default", []byte("Lk"))
			lost := 0
			tell := func(_ []byte, _ record.Type, what string) {
				if strings.Contains(what, "from both ends") {
					lost++
				}
			}
			e := &format.Env{Memory: memory, TempDir: t.TempDir()}
			r, err := formattest.Walk(m.Open(t).(format.Undead).DeadRecords(context.Background(), "0", record.Of(record.List),
				format.Span{}, e, tell))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(elementsOf(t, r), ""); got != c.want {
				t.Errorf("%q gone, memory %d: %s comes back, want %s", c.gone, memory, got, c.want)
			}
			if (lost > 0) != (c.gone != "") {
				t.Errorf("%q gone, memory %d: told %d times that nodes are lost", c.gone, memory, lost)
			}
		}
	}
}
