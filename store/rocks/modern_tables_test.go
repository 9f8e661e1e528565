package rocks

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// refusedModern are the databases of rocks-modern with refused features, and the names of these.
var refusedModern = map[string]string{
	"97-wide": "wide-column entity", "118-wide": "wide-column entity", "118-separate": "keys and values apart",
	"118-timed": "value with a write time",
}

// TestModern reads databases that RocksDB 9.7.4 and 11.8.1 wrote, one for each feature of their files, copied while the
// engine was running: the rows match its own iterator.
func TestModern(t *testing.T) {
	dir := fixtures.Unpack(t, "rocks-modern")
	all, err := filepath.Glob(filepath.Join(dir, "*", "db"))
	if err != nil || len(all) < 40 {
		t.Fatalf("%d databases, %v", len(all), err)
	}
	for _, db := range all {
		name := filepath.Base(filepath.Dir(db))
		t.Run(name, func(t *testing.T) {
			got, err := dumpRows(t, db)
			if what := refusedModern[name]; what != "" {
				if !errors.Is(err, base.ErrUnsupported) || !strings.Contains(err.Error(), what) {
					t.Errorf("error %v, want one about %s", err, what)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(filepath.Dir(db), "truth"))
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%d bytes of rows, want %d", len(got), len(want))
			}
			testGolden(t, db)
		})
	}
}

// unexpected fails at findings other than those of a sound database: a log may end at the former contents of its file.
func unexpected(t *testing.T, dir string) func(record.Finding) {
	return func(f record.Finding) {
		if f.Kind == "torn-log" && strings.HasSuffix(filepath.Dir(dir), "recycle") {
			return
		}
		t.Errorf("%s: %+v", dir, f)
	}
}

// dumpRows returns all rows of a database as the truth files have them.
func dumpRows(t *testing.T, dir string) (string, error) {
	s, err := Open(context.Background(), dir, &store.Options{Merger: foldLast, Report: unexpected(t, dir)})
	if err != nil {
		return "", err
	}
	defer s.Close()
	if err := s.(store.BlockChecker).CheckBlocks(context.Background()); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, ks := range s.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		for err == nil {
			var k, v []byte
			if k, v, err = it.Next(); err == nil {
				fmt.Fprintf(&b, "%s %s %s\n", ks.Name(), hex.EncodeToString(k), hex.EncodeToString(v))
			}
		}
		if err != io.EOF {
			return "", err
		}
		it.Close()
	}
	return b.String(), nil
}
