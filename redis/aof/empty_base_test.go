package aof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmptyBase: an RDB base is never empty; a base of commands is empty if the server has no keys.
func TestEmptyBase(t *testing.T) {
	for base, wrong := range map[string]bool{"a.1.base.rdb": true, "a.1.base.aof": false} {
		dir := t.TempDir()
		for name, text := range map[string]string{base: "", "a.1.incr.aof": "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
			"a.manifest": "file " + base + " seq 1 type b\nfile a.1.incr.aof seq 1 type i\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		src, _, err := open(t, dir, false)
		if err == nil {
			src.Close()
		}
		if (err != nil) != wrong || err != nil && !strings.Contains(err.Error(), "a.1.base.rdb") {
			t.Errorf("%s: %v", base, err)
		}
		src, found, err := open(t, dir, true)
		if err != nil {
			t.Fatal(err)
		}
		src.Close()
		if len(found) > 0 != wrong || wrong && found[0].Kind != FindDamaged {
			t.Errorf("%s: findings %v", base, found)
		}
	}
}
