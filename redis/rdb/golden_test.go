package rdb_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
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

func TestWalkGoldens(t *testing.T) {
	paths, _ := filepath.Glob("../../../shared/golden/rdb-*.rdb.gz")
	for _, p := range paths {
		records, elements, err := walk(readGolden(t, p))
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		t.Log(filepath.Base(p), records, elements)
	}
}

func TestWalkPeers(t *testing.T) {
	paths, _ := filepath.Glob("../../../shared/peers-rdb/*/*.rdb")
	for _, p := range paths {
		b, _ := os.ReadFile(p)
		records, elements, err := walk(b)
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		t.Log(filepath.Base(p), records, elements)
	}
}
