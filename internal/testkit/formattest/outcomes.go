package formattest

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/record"
)

var update = flag.Bool("update", false, "write what tests find to files in testdata")

// CheckOutcomes compares a text with a file in testdata, paragraph by paragraph. With -update it writes the file:
// review the changes before you commit them.
func CheckOutcomes(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(data), "\n\n")
	for i, text := range strings.Split(got, "\n\n") {
		if i >= len(want) || text != want[i] {
			t.Fatalf("got\n%s\nwant\n%s\n(-update writes %s: read what changes there)", text, want[min(i, len(want)-1)], file)
		}
	}
	if n := strings.Count(got, "\n\n") + 1; n != len(want) {
		t.Errorf("%s has %d paragraphs, want %d", file, len(want), n)
	}
}

// Damaged returns checksums of the output of say for every truncation of b and b with an extra byte, and for b with
// any byte changed. They change if a message, an offset or a bound does.
func Damaged(b []byte, say func([]byte) string) string {
	cut, changed := crc32.NewIEEE(), crc32.NewIEEE()
	for i := range b {
		io.WriteString(cut, say(b[:i:i])+"\n")
		for _, x := range []byte{0x01, 0x80, 0xff} {
			other := bytes.Clone(b)
			other[i] ^= x
			io.WriteString(changed, say(other)+"\n")
		}
	}
	io.WriteString(cut, say(append(bytes.Clone(b), 0)))
	return fmt.Sprintf("cut or longer %08x, changed %08x", cut.Sum32(), changed.Sum32())
}

// Told returns a paragraph with all data read from a source: records, findings and ledger. It appends a checksum for
// each of several other ways to read it: with little memory, without Deep, type by type, and without elements.
func Told(t testing.TB, name string, open func() format.Source) string {
	t.Helper()
	dir := t.TempDir()
	way := func(memory int64, deep bool, batch int, byType bool) string {
		src := open()
		out := ""
		for _, db := range src.Databases() {
			passes := []record.TypeSet{record.AllTypes}
			if byType {
				passes = passes[:0]
				for _, typ := range src.Types(db).Types() {
					passes = append(passes, record.Of(typ))
				}
			}
			for _, types := range passes {
				out += Tell(t, src, db, types, &format.Env{Memory: memory, Deep: deep, TempDir: dir}, batch)
			}
		}
		return out
	}
	out := name + "\n" + way(1<<20, true, 7, false) + "other ways:"
	for _, other := range []string{way(1, true, 7, false), way(400, true, 1, false), way(1<<20, false, 2, false),
		way(1<<20, true, 3, true), way(1<<20, true, 0, false)} {
		out += fmt.Sprintf(" %08x", crc32.ChecksumIEEE([]byte(other)))
	}
	return out + "\n\n"
}

// Tell returns all data read from some types of a database, in batches of this size; 0 reads no elements. Findings
// follow the records, type by type, as the order of readers depends on their batches. The ledger must add up.
func Tell(t testing.TB, src format.Source, db string, types record.TypeSet, e *format.Env, batch int) string {
	t.Helper()
	var out strings.Builder
	var found []record.Finding
	var l record.Ledger
	e.Ledger = &l
	e.Report = func(f record.Finding) {
		found = append(found, f)
	}
	r := RecordsOf(t, src, db, types, format.Span{}, e)
	if batch == 0 {
		e.Wanted = func(*record.Header) bool { return false }
	}
	dst := make([]record.Element, batch)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Fprintf(&out, "%v\n", err)
			break
		}
		fmt.Fprintf(&out, "%s %q in %q expires %d %t len %d last %x by name %t\n", h.Type, h.Key, h.DB, h.ExpireMS, h.Expired,
			h.Len, h.Last, h.ByName)
		if h.Expired {
			r.Settle(record.Expired)
		}
		for err == nil && batch > 0 {
			var n int
			n, err = r.Read(dst)
			for _, x := range dst[:n] {
				fmt.Fprintf(&out, "  %d %.40q %.40q %v %d\n", x.Kind, x.Name, x.Value, x.Score, x.ExpireMS)
			}
		}
		if err != nil && err != io.EOF {
			fmt.Fprintf(&out, "  %v\n", err)
		}
	}
	if err := r.Close(); err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	slices.SortStableFunc(found, func(a, b record.Finding) int { return int(a.Type) - int(b.Type) })
	for _, f := range found {
		fmt.Fprintf(&out, "%s %s, %s of %q in %q %s at %s %d: %s\n", f.Severity, f.Kind, f.Type, f.Key, f.DB, f.Keyspace,
			f.Place.File, f.Place.Off, f.Detail)
	}
	CheckLedger(t, &l)
	rows := l.Snapshot()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&out, "%s: %s; %d entries, %d visible\n", name, Classes(&l, name), rows[name].Entries, rows[name].Visible)
	}
	return out.String()
}

// EachDamage calls f with b, every truncation of b, b with an extra byte, and b with any byte changed.
func EachDamage(b []byte, f func([]byte)) {
	f(b)
	f(append(bytes.Clone(b), 0))
	for i := range b {
		f(b[:i:i])
		for _, x := range []byte{0x01, 0x80, 0xff} {
			other := bytes.Clone(b)
			other[i] ^= x
			f(other)
		}
	}
}
