package catalog_test

import (
	"strings"
	"testing"

	"kvferry/catalog"
	"kvferry/format"
)

// TestMistaken checks that what looks like another kind of location is refused as a source and as a target, with what to
// write.
func TestMistaken(t *testing.T) {
	c := catalog.Default()
	for given, want := range map[string]string{
		"kvrocks://127.0.0.1:6666": "kvrocks is a format of files, not a server: write kvrocks:/path",
		"pika3://10.0.0.1:9221":    "or redis://10.0.0.1:9221 for a running server",
		"ardb://h":                 "write ardb:/path",
		"rdb:///data/x":            "write rdb:/path",
		"parquet://x":              "write parquet:/path",
		"kvrocks2.17://x:1":        "redis://x:1",
		"Kvrocks://x:1":            "redis://x:1",
		"valkey://127.0.0.1:6379":  "redis://127.0.0.1:6379",
		"REDIS://127.0.0.1:6379":   "write redis://127.0.0.1:6379",
		"file:///data/x":           "write the path alone, or FORMAT:/data/x",
		"gs://bucket/x":            "no such scheme",
		"127.0.0.1:6379":           "write redis://127.0.0.1:6379 for a server, or ./127.0.0.1:6379 for a path",
		"localhost:6379/2":         "redis://localhost:6379/2",
		"[::1]:6379":               "redis://[::1]:6379",
		"db-1.example.com:6380":    "redis://db-1.example.com:6380",
		"RDB:x":                    "write rdb:x",
		"Kvrocks:x":                "write kvrocks:x",
		"Ardb+LevelDB:x":           "write ardb+leveldb:x",
		"Pika3.5:/x":               "write pika3.5:/x",
		"kvrocks2.12:x":            "write kvrocks:, which is Kvrocks 2.0 and later",
		"ssdb1.9:x":                "write ssdb:",
		"kvrocks2.6:x":             "write kvrocks2.9:",
		"valkey:x":                 "rdb: for a dump",
		"redis7:x":                 "rdb: for a dump",
		"Valkey8.1:x":              "rdb: for a dump",
		"json:x":                   "kvferry dump --format",
		"jsonl:x":                  "kvferry dump --format",
		"rocksdb:x":                "as in ardb+rocksdb:",
		"file:x":                   "write the path alone",
		"pika:x":                   `did you mean "pika2", "pika3" or "pika4"?`,
		"nosuch:x":                 "unknown format or server",
	} {
		_, source := c.Source(given)
		_, target := c.Target(given)
		for side, err := range map[string]error{"source": source, "target": target} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %s", side, given, err, want)
			}
		}
	}
	for _, given := range []string{"kvrocks:x", "rdb:127.0.0.1:6379", "pika3.5:/x", "ardb+leveldb:x", "redis://127.0.0.1:6379", "kvrocks:./a://b"} {
		if _, err := c.Target(given); err != nil {
			t.Errorf("target %s: %v", given, err)
		}
	}
}

// TestMistakenSecrets: the advice on a location does not print its password.
func TestMistakenSecrets(t *testing.T) {
	c := catalog.Default()
	for _, given := range []string{"valkey://u:secret@h:1", "kvrocks://u:secret@h:1", "REDIS://u:secret@h:1",
		"RDB:https://u:secret@h/x", "gs://b/k?sig=secret",
		"Rdb:https://u:secret@h/x?X-Amz-Signature=secret"} {
		if _, err := c.Target(given); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// TestPrintedWeb checks that the printed target of a dataset on a web server or in an object store is on the disk, also
// when its files are no longer open.
func TestPrintedWeb(t *testing.T) {
	c := catalog.Default()
	f, err := c.Format("rdb")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"http://h:1/d/x.rdb", "https://h/x.rdb?sig=1", "s3://b/d/x.rdb", "http:/h/x.rdb"} {
		found := &catalog.Found{Format: f, Location: catalog.Location{Path: address}, Driver: new(catalog.Driver)}
		if _, target := found.Like(format.Shape{}, format.LayoutAuto, ".rest"); target != "rdb:./x.rdb.rest" {
			t.Errorf("%s: %s", address, target)
		}
	}
}
