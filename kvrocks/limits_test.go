package kvrocks_test

import (
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// TestEdges: what is found on either side of a limit.
func TestEdges(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	hash := func(r rows, m codec.Meta, expiry uint64) {
		m.Wide, m.Kind, m.Size, m.Extras = true, codec.KindHash, 1, hashState(0, 6, 9)
		r.Put("metadata", metaKey("k"), codec.AppendMeta(nil, m))
		r.Put("default", subKey(m.Version, "a"), []byte(be(expiry)))
	}
	made := func(at time.Time) func(r rows) {
		return func(r rows) { hash(r, codec.Meta{Version: codec.Version(at.UnixMicro()) << codec.VersionCounter}, 6) }
	}
	bitmap := func(size uint64) func(r rows) {
		return func(r rows) {
			r.meta(codec.KindBitmap, size, nil)
			r.sub("default", "0", strings.Repeat("x", codec.SegmentLen))
		}
	}
	for _, c := range []struct {
		name       string
		do         func(r rows)
		found, typ string
	}{
		{"a version of now", made(now), "", "hash"},
		{"a version of tomorrow", made(now.Add(24 * time.Hour)), "", "hash"},
		{"a version of later", made(now.Add(24*time.Hour + time.Microsecond)), "future-version", "hash"},
		{"a field before the bounds", func(r rows) { hash(r, codec.Meta{Version: 7}, 5) }, "field-bounds", "hash"},
		{"a field at the bounds", func(r rows) { hash(r, codec.Meta{Version: 7}, 9) }, "", "hash"},
		{"a field of a hash that has expired", func(r rows) { hash(r, codec.Meta{Version: 7, Expiry: codec.UnixMillis(now.UnixMilli() - 1)}, 5) }, "", "hash"},
		{"a bitmap that is a string", bitmap(2048), "", "string"},
		{"a longer bitmap", bitmap(2049), "long-bitmap", "other"},
	} {
		m := formattest.NewMemory(t, kvrocks.New())
		r := rows{m.Store("db")}
		for _, cf := range []string{"default", "metadata", "zset_score", "stream", "propagate"} {
			r.Keyspace(cf, bytewise)
		}
		c.do(r)
		var f formattest.Findings
		src := formattest.Open(t, m.Format, m.Dir, &format.OpenOptions{Store: m.FS.Open, MaxBitmap: 2048, Options: reportTo(&f)})
		w := formattest.Records(t, src, kvrocks.DefaultNamespace,
			&format.Env{Now: now, Report: f.Report, Deep: true, TempDir: t.TempDir(), Ledger: new(record.Ledger)})
		h, err := w.Next()
		if err != nil || h.Type.String() != c.typ {
			t.Errorf("%s: %+v, %v", c.name, h, err)
			continue
		}
		for err == nil {
			_, err = w.Read(make([]record.Element, 1))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if kinds := strings.Join(f.Kinds(), " "); kinds != c.found {
			t.Errorf("%s: found %q, want %q", c.name, kinds, c.found)
		}
	}
}
