package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"kvferry/store/rocks/files"
)

func TestNewest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(option, value, file string) {
		t.Helper()
		if v, f, err := files.Option(dir, option); v != value || f != file || err != nil {
			t.Errorf("%s: %q in %q, %v", option, v, f, err)
		}
	}
	check("rocksdb_version", "", "")
	for name, text := range map[string]string{
		"OPTIONS-000009":        "[Version]\n  rocksdb_version=8.7.3\n  options_file_version=1.1\n\n[DBOptions]\n  wal_dir=/a=b\n",
		"OPTIONS-000010":        "[Version]\n  rocksdb_version=9.1.0\n[DBOptions]\n  wal_dir=/a=b\n",
		"OPTIONS-000011.dbtmp":  "rocksdb_version=1.0.0\n",
		"OPTIONS-000002":        "rocksdb_version=5.9.2\n",
		"elsewhere-OPTIONS-999": "rocksdb_version=5.9.2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check("rocksdb_version", "9.1.0", "OPTIONS-000010")
	check("wal_dir", "/a=b", "OPTIONS-000010")
	check("version", "", "OPTIONS-000010")
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"8.7.3": true, "8.7": true, "8.10.0": true, "9.0.1": true, "10.1.2": true,
		"8.3.3": false, "8.6.9": false, "5.9.2": false, "": false, "8": false, "9.x": false, "x.9": false} {
		if files.VersionAtLeast(version, 8, 7) != want {
			t.Errorf("%q at least 8.7: %v", version, !want)
		}
	}
}
