package rdb_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
)

func readGolden(t testing.TB, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// walk reads a file to its end and decodes all items.
func walk(b []byte) (records, elements int, err error) {
	s, err := rdb.NewScanner(bytes.NewReader(b), 0, int64(len(b)))
	if err != nil {
		return 0, 0, err
	}
	var d rdb.Decoder
	dst := make([]record.Element, 64)
	for {
		it, err := s.Next()
		if err != nil {
			return records, elements, err
		}
		switch it.Op {
		case rdb.OpEOF:
			end := s.Offset()
			sum, ok, err := s.Checksum()
			if err == nil && ok && sum != 0 && sum != crc64.Update(0, b[:end]) {
				err = io.ErrUnexpectedEOF
			}
			return records, elements, err
		case rdb.OpKey:
		default:
			continue
		}
		var h record.Header
		if it.Value != nil {
			err = d.Begin(it.Type, s.Header, it.Value, it.From, &h)
		} else {
			err = d.BeginAt(it.Type, s.Header, bytes.NewReader(b), it.From, it.To, &h)
		}
		for err == nil {
			var n int
			n, err = d.Read(dst)
			elements += n
		}
		if err != io.EOF {
			return records, elements, err
		}
		records++
	}
}

// goldens are the RDB files of servers: those of the repository, and those beside it.
func goldens(t testing.TB) []string {
	t.Helper()
	in, _ := filepath.Glob("../../fixtures/golden/rdb-*.rdb.gz")
	beside, _ := filepath.Glob("../../../shared/golden/rdb-*.rdb.gz")
	if len(in) == 0 {
		t.Fatal("no RDB file in fixtures/golden")
	}
	return append(in, beside...)
}

// recorded returns the number of records of a golden according to its server: a line each in the file of details, and
// those that had expired when the server loaded the file.
func recorded(t testing.TB, golden string) int {
	t.Helper()
	first, rest, _ := bytes.Cut(readGolden(t, strings.TrimSuffix(golden, ".rdb.gz")+".extra.jsonl.gz"), []byte("\n"))
	var about struct {
		Expired [][4]any `json:"expired_in_file"` // database, key, type or fields, time
	}
	if err := json.Unmarshal(first, &about); err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	for _, e := range about.Expired {
		db, _ := e[0].(float64)
		key, _ := e[1].(string)
		head := fmt.Appendf(nil, `{"db":"%d",`, int(db))
		named := fmt.Appendf(nil, `"key":%q,`, base64.StdEncoding.EncodeToString([]byte(key)))
		kept := slices.ContainsFunc(bytes.Split(rest, []byte("\n")), func(line []byte) bool {
			return bytes.HasPrefix(line, head) && bytes.Contains(line, named)
		})
		if !kept { // else some of its fields have expired
			gone[fmt.Sprint(db, key)] = true
		}
	}
	return bytes.Count(rest, []byte("\n")) + len(gone)
}

func TestWalkGoldens(t *testing.T) {
	for _, p := range goldens(t) {
		records, elements, err := walk(readGolden(t, p))
		if want := recorded(t, p); err != nil || records != want || elements < records {
			t.Errorf("%s: %d records, want %d, %d elements, %v", p, records, want, elements, err)
		}
	}
}

func TestWalkPeers(t *testing.T) {
	paths, _ := filepath.Glob("../../../shared/peers-rdb/*/*.rdb")
	if len(paths) == 0 {
		t.Skip("SKIPPED: no files of other projects beside the repository")
	}
	for _, p := range paths {
		b, _ := os.ReadFile(p)
		records, elements, err := walk(b)
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		t.Log(filepath.Base(p), records, elements)
	}
}
