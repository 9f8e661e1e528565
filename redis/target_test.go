package redis

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/rdb"
)

func formatOf(t testing.TB, version string) format.Format {
	t.Helper()
	f, err := WithVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write creates a file of random records in two databases and several shards, and returns it as reopened by the target.
func write(t testing.TB, path string, f format.Format, records int, now time.Time) (format.Source, *record.Fingerprint) {
	t.Helper()
	dst, err := f.Create(context.Background(), path, &format.CreateOptions{DBs: []string{"0", "12"}, TempDir: t.TempDir(),
		Now: fixtures.Clock, Reopen: &format.OpenOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, dst, f.Limits(), records, now)
	return formattest.Finish(t, dst), want
}

// fill writes the records of write.
func fill(t testing.TB, dst format.Target, limits format.Limits, records int, now time.Time) *record.Fingerprint {
	t.Helper()
	limits.Types &^= record.Of(record.Other)
	var want record.Fingerprint
	for n, db := range []string{"0", "0", "12"} {
		for _, sum := range []bool{true, false} {
			r := &fitted{Reader: fixtures.Records(uint64(n), records,
				fixtures.Options{DB: db, Limits: limits, MaxElements: 300, Now: now}), dst: dst}
			if n == 1 {
				r.prefix = "second:" // keys must be unique
			}
			if sum {
				want.Merge(formattest.Sum(t, r))
				continue
			}
			w, err := dst.Shard(n, db, limits.Types, 0)
			if err == nil {
				err = fixtures.Pump(w, r)
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return &want
}

// fitted applies the target's losses to records.
type fitted struct {
	record.Reader
	dst    format.Target
	prefix string
	keys   []byte
}

func (f *fitted) Next() (*record.Batch, error) {
	b, err := f.Reader.Next()
	if err != nil {
		return nil, err
	}
	f.keys = nil
	for i := range b.Records {
		r := &b.Records[i]
		from := len(f.keys)
		f.keys = append(append(f.keys, f.prefix...), r.Key...)
		r.Key = f.keys[from:]
		f.dst.Losses(&r.Header)
		r.N = len(f.dst.ElementLosses(&r.Header, b.Of(i), func(record.Loss) {}))
	}
	return b, nil
}

// A file of any version reads back equal, sorted and unsorted, and is byte-identical each time.
func TestTargets(t *testing.T) {
	for _, version := range rdb.Versions() {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			src, want := write(t, filepath.Join(dir, "a.rdb"), formatOf(t, version), 60, fixtures.Clock)
			formattest.CheckEqual(t, sumOfAll(t, src, true), want, false)
			formattest.CheckEqual(t, sumOfAll(t, src, false), want, false)
			write(t, filepath.Join(dir, "b.rdb"), formatOf(t, version), 60, fixtures.Clock)
			a, err := os.ReadFile(filepath.Join(dir, "a.rdb"))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := os.ReadFile(filepath.Join(dir, "b.rdb"))
			if string(a) != string(b) {
				t.Error("another file of the same records")
			}
			if left, _ := os.ReadDir(dir); len(left) != 2 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A server loads the written file, returns its data over the protocol, and saves a file with the same data.
func TestServerLoads(t *testing.T) {
	for _, version := range []string{"6", "7", "8", "9", "10"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "dump.rdb")
			src, _ := write(t, path, formatOf(t, version), 40, time.Now().Add(time.Hour))
			known := func(m map[string]string) map[string]string { return m }
			if version == "9" {
				known = withoutCounts
			}
			written := known(held(t, src))
			client := redistest.StartIn(t, dir, "--save", "", "--dbfilename", "dump.rdb").Client()
			if diff := redistest.Diff(written, known(client.Records(t)), 5); len(diff) > 0 {
				t.Fatalf("the server answers something else: %q", diff)
			}
			client.Must(t, "SAVE")
			again := openPath(t, path)
			if n := again.(*source).header().Version; n != 10 {
				t.Errorf("the server saved version %d", n)
			}
			if diff := redistest.Diff(written, known(held(t, again)), 5); len(diff) > 0 {
				t.Fatalf("the server saved something else: %q", diff)
			}
		})
	}
}

// counts are two expressions: each begins with a literal, which is found fast in megabytes.
var counts = []*regexp.Regexp{regexp.MustCompile(`added=-?[0-9]+`), regexp.MustCompile(`read=-?[0-9]+`)}

// withoutCounts removes stream counters that version 9 lacks and servers recount.
func withoutCounts(m map[string]string) map[string]string {
	for k := range m {
		for _, c := range counts {
			m[k] = c.ReplaceAllString(m[k], "?")
		}
	}
	return m
}

// held reads a whole file, like the test client reads a server.
func held(t *testing.T, src format.Source) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{},
			&format.Env{Now: time.Now(), TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, out, r)
	}
	return out
}
