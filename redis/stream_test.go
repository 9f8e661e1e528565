package redis

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// pass writes the records of write to a pass over a stream. Before each shard it calls between.
func pass(t *testing.T, f format.Format, between func() error) *record.Fingerprint {
	t.Helper()
	dst, err := f.Create(context.Background(), "",
		&format.CreateOptions{DBs: []string{"0", "12"}, TempDir: t.TempDir(), Now: fixtures.Clock})
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, &interposed{dst, between}, f.Limits(), 40, fixtures.Clock)
	if _, err := dst.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	return want
}

type interposed struct {
	format.Target
	between func() error
}

func (i *interposed) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	if err := i.between(); err != nil {
		return nil, err
	}
	return i.Target.Shard(n, db, types, memory)
}

// A stream of any version is as long as the first pass found and reads back equal. Large values are among its records.
func TestStreams(t *testing.T) {
	for _, version := range rdb.Versions() {
		t.Run(version, func(t *testing.T) {
			v, err := rdb.ParseVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			m := Measure(v)
			pass(t, m.Format(), func() error { return nil })
			large := 0
			for _, s := range m.shards {
				large += len(s.counts)
			}
			if large < 3 {
				t.Fatalf("%d large values", large)
			}
			var out, filled bytes.Buffer
			want := pass(t, m.Stream(&out).Format(), func() error { return nil })
			if int64(out.Len()) != m.Size() {
				t.Fatalf("%d bytes were announced, but %d written", m.Size(), out.Len())
			}
			s := m.Stream(&filled)
			pass(t, s.Format(), s.Fill)
			if v.Number >= 7 && filled.Len() <= out.Len() {
				t.Errorf("%d bytes with filling, %d without", filled.Len(), out.Len())
			}
			for name, b := range map[string][]byte{"a.rdb": out.Bytes(), "b.rdb": filled.Bytes()} {
				path := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				formattest.CheckEqual(t, sumOfAll(t, openPath(t, path), true), want, false)
			}
		})
	}
}

// Records that differ from those of the first pass are an error before the stream ends.
func TestStreamOfChangedRecords(t *testing.T) {
	v, _ := rdb.ParseVersion("9")
	m := Measure(v)
	pass(t, m.Format(), func() error { return nil })
	var out bytes.Buffer
	dst, err := m.Stream(&out).Format().Create(context.Background(), "",
		&format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := dst.Shard(0, "0", record.AllTypes, 0)
	if err == nil {
		err = fixtures.Pump(w, &fitted{Reader: fixtures.Records(0, 39, fixtures.Options{DB: "0", Limits: m.Format().Limits()}),
			dst: dst})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errMoved) {
		t.Error(err)
	}
	if _, err := dst.Finish(context.Background()); !errors.Is(err, errMoved) {
		t.Error(err)
	}
}
