package redis

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// TestForged: an inconsistent value in a file without a checksum is reported with its key and offset, and the keys
// around it are read.
func TestForged(t *testing.T) {
	sized := func(b string) string { return string(rune(len(b))) + b } // below 64 bytes
	for name, forged := range map[string]struct {
		typ   rdb.Type
		value string
		kind  string // FindDamagedValue if empty
	}{
		"intset of no width":          {11, sized("\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00"), ""},
		"intset longer than it is":    {11, sized("\x02\x00\x00\x00\xff\xff\xff\x7f\x01\x00"), ""},
		"listpack longer than it is":  {16, sized("\xff\xff\xff\x7f\x02\x00\x01\x01\x02\x01\xff"), ""},
		"listpack with half a pair":   {16, sized("\x0a\x00\x00\x00\x01\x00\x01\x01\xff\x00"), ""},
		"listpack without an end":     {16, sized("\x0b\x00\x00\x00\x02\x00\x01\x01\x02\x01\x00"), ""},
		"ziplist that points outside": {13, sized("\x0b\x00\x00\x00\xff\xff\xff\x7f\x02\x00\xff"), ""},
		"quicklist node of no kind":   {18, "\x01\x07" + sized("a"), record.FindNewer},
		"zipmap that ends early":      {9, sized("\x01\xfe\xff\xff\xff\x7f"), ""},
		"zipmap with a long length":   {9, sized("\x01\xfe\x01\x00\x00\x00a\x01\x00b\xff"), ""},
		"ziplist with a wrong tail":   {13, sized("\x11\x00\x00\x00\x0a\x00\x00\x00\x02\x00\x00\x01a\x03\x01b\xff"), ""},
		"empty ziplist node":          {14, "\x02" + sized("\x0b\x00\x00\x00\x0a\x00\x00\x00\x00\x00\xff") + sized("\x0e\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x01a\xff"), ""},
		"empty plain node":            {18, "\x02\x01\x00\x01\x01a", ""},
		"empty listpack node":         {18, "\x02\x02" + sized("\x07\x00\x00\x00\x00\x00\xff") + "\x02" + sized("\x09\x00\x00\x00\x01\x00\x01\x01\xff"), ""},
		"intset that does not ascend": {11, sized("\x02\x00\x00\x00\x02\x00\x00\x00\x05\x00\x01\x00"), ""},
		"field that expires at abc":   {25, "\x00\x00\x00\x00\x00\x00\x00\x00" + sized("\x12\x00\x00\x00\x03\x00\x81f\x02\x81v\x02\x83abc\x04\xff"), ""},
		"field that expires at -1":    {25, "\x00\x00\x00\x00\x00\x00\x00\x00" + sized("\x10\x00\x00\x00\x03\x00\x81f\x02\x81v\x02\xdf\xff\x02\xff"), ""},
		"field that expires in 10889": {25, "\x00\x00\x00\x00\x00\x00\x00\x00" + sized("\x17\x00\x00\x00\x03\x00\x81f\x02\x81v\x02\xf4\x00\x00\x00\x00\x00\x00\x01\x00\x09\xff"), ""},
		"plain field that does so":    {24, "\x01\x00\x00\x00\x00\x00\x01\x00\x01\x01\x01f\x01v", ""},
		"producers for no time":       {26, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x64\x00\x00\x00", ""},
		"producers for two days":      {26, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00\x02\xa3\x00\x01\x00\x00\x00", ""},
		"expiries out of order":       {25, "\x00\x00\x00\x00\x00\x00\x00\x00" + sized("\x17\x00\x00\x00\x06\x00\x81f\x02\x81v\x02\x09\x01\x81g\x02\x81v\x02\x08\x01\xff"), ""},
	} {
		file := append([]byte("REDIS0011"), rdb.AppendKey(nil, 0, []byte("before"), 0)...)
		file = append(file, sized("1")...)
		file = append(append(file, rdb.AppendKey(nil, forged.typ, []byte("bad"), 0)...), forged.value...)
		at := int64(len(file) - len(forged.value))
		file = append(append(file, rdb.AppendKey(nil, 0, []byte("behind"), 0)...), sized("2")...)
		file = append(rdb.AppendEOF(file), make([]byte, 8)...)
		path := filepath.Join(t.TempDir(), "forged.rdb")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		src := openPath(t, path)
		var found []record.Finding
		var ledger record.Ledger
		reader, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{},
			&format.Env{Now: truthTime, TempDir: t.TempDir(),
				Ledger: &ledger, Report: func(f record.Finding) { found = append(found, f) }})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		r := record.Walk(record.Booked(reader, &ledger))
		for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			keys = append(keys, string(h.Key))
			for err := error(nil); err != io.EOF; {
				if _, err = r.Read(make([]record.Element, 4)); err != nil && err != io.EOF {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		formattest.CheckLedger(t, &ledger)
		all := strings.Join(keys, " ")
		if !strings.HasPrefix(all, "b") || !strings.Contains(all, "before") || !strings.Contains(all, "behind") {
			t.Errorf("%s: keys %s", name, all)
		}
		if forged.kind == "" {
			forged.kind = FindDamagedValue
		}
		if len(found) != 1 || found[0].Kind != forged.kind || string(found[0].Key) != "bad" || found[0].Place.Off < at ||
			found[0].Place.Off > at+int64(len(forged.value)) {
			t.Errorf("%s: findings %+v, want one from %d on", name, found, at)
		}
		for _, ks := range src.Keyspaces() {
			it, err := ks.Rows(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			bad := 0
			for key, value, err := it.Next(); err != io.EOF; key, value, err = it.Next() {
				if err != nil {
					t.Fatal(err)
				}
				if row := src.Describe(ks.DB, ks.Name, key, value); row.Err != nil {
					bad++
				}
			}
			if bad != 1 {
				t.Errorf("%s: %d rows are malformed", name, bad)
			}
		}
	}
}
