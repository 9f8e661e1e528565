package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"kvferry/convert"
	"kvferry/record"
)

// TestSameFiles checks that convert, verify and inspect count the same files and bytes of a dataset: those they read.
func TestSameFiles(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]int{"bw-basic": 35, "nemo-basic": 29, "ardb-rocksdb-basic": 7, "ardb-leveldb-basic": 4,
		"ardb-lmdb-basic": 1} {
		src, dst := golden(t, name), filepath.Join(t.TempDir(), "dst")
		ok(t, "convert", "--type", "string,hash,list,set,zset", "--allow-loss", "expiry-ms", src, "blackwidow:"+dst)
		rep, err := convert.ReadReport(convert.ReportPath(dst))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			path  string
			files int
			bytes int64
		}{
			{src, rep.Source.Files, rep.Source.Bytes},
			{dst, rep.Target.Files, rep.Target.Bytes},
		} {
			var v, i struct {
				Files int   `json:"files"`
				Bytes int64 `json:"bytes"`
			}
			for cmd, out := range map[string]any{"verify --format json": &v, "inspect --format json": &i} {
				if err := json.Unmarshal([]byte(ok(t, append(commandWords(cmd), c.path)...)), out); err != nil {
					t.Fatal(err)
				}
			}
			convert := fmt.Sprint(c.files, " files, ", record.Bytes(c.bytes))
			if v != i || v.Files != c.files || v.Bytes != c.bytes || c.files == 0 {
				t.Errorf("%s: convert counts %s, verify %+v, inspect %+v", c.path, convert, v, i)
			}
		}
		if rep.Source.Files != files {
			t.Errorf("%s: %d files, want %d", name, rep.Source.Files, files)
		}
	}
}
