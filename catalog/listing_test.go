package catalog_test

import (
	"io"
	"testing"

	"kvferry/catalog"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// TestListings: a pass that reads some elements of each record and passes the others by a seek, as a served list of keys
// does, yields the same records as one that reads all, with blocks kept and without.
func TestListings(t *testing.T) {
	for _, name := range fixtures.Names() {
		if name == "rocks-modern" || name == "nemo-basic-zlib" { // tables, and no format; another codec
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fixtures.Unpack(t, name)
			for _, hot := range []*store.Hot{nil, {Max: 64 << 10}, {Max: 8 << 20}} {
				src := openWith(t, dir, hot)
				for _, db := range src.Databases() {
					want := listed(t, src, db, false, -1)
					for _, n := range []int{0, 1, 9, 70, -1} {
						got := listed(t, src, db, true, n)
						for i := range min(len(got), len(want)) {
							if got[i] != want[i] {
								t.Fatalf("database %s, %d elements read of each record: %q, want %q", db, n, got[i], want[i])
							}
						}
						if len(got) != len(want) {
							t.Fatalf("database %s, %d elements read of each record: %d records, want %d",
								db, n, len(got), len(want))
						}
					}
				}
			}
		})
	}
}

func openWith(t *testing.T, dir string, hot *store.Hot) format.Source {
	t.Helper()
	c := catalog.Default()
	place, err := c.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(place, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	src, err := found.Open(t.Context(), &format.OpenOptions{Store: found.Driver.Open, Kind: found.Driver.Name,
		Options: store.Options{Resort: true, Hot: hot}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// listed returns the names and types of the records that have elements, of which it reads up to n, all if n < 0.
func listed(t *testing.T, src format.Source, db string, lookups bool, n int) (out []string) {
	t.Helper()
	env := format.Env{TempDir: t.TempDir(), Ledger: new(record.Ledger), Memory: 1 << 20, RecordsOnly: lookups,
		RedisStrings: true, Lookups: lookups}
	r := formattest.RecordsOf(t, src, db, src.Types(db), format.Span{}, &env)
	defer r.Close()
	room := make([]record.Element, 1)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Keyless != record.Keyed || h.Expired {
			continue
		}
		line := string(h.Key) + "\x00" + h.Type.String()
		for i := 0; i != n; i++ {
			if _, err := r.Read(room); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, line)
	}
}
