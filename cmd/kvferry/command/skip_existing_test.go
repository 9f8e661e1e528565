package command

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/convert"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// ofServer reads and removes the report of the last conversion into a server.
func ofServer(t *testing.T) *convert.Report {
	t.Helper()
	files, err := filepath.Glob("redis-*.kvferry-report.json")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	r, err := convert.ReadReport(files[0])
	if err == nil {
		err = os.Remove(files[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rowsIn returns the rows of some classes in a report, by keyspace.
func rowsIn(r *convert.Report, classes ...string) map[string]int64 {
	out := map[string]int64{}
	for _, a := range r.Ledger {
		for _, c := range classes {
			out[string(a.Keyspace)] += a.Classes[c]
		}
	}
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// partCounts returns records and elements by database and type.
func partCounts(lists ...[]convert.PartDigest) map[string][2]int64 {
	out := map[string][2]int64{}
	for _, list := range lists {
		for _, p := range list {
			name := string(p.DB) + " " + p.Type
			out[name] = [2]int64{out[name][0] + p.Records, out[name][1] + p.Elements}
		}
	}
	return out
}

// addsUp fails the test unless each row has exactly one class.
func addsUp(t *testing.T, r *convert.Report) {
	t.Helper()
	for _, a := range r.Ledger {
		sum := int64(0)
		for c, n := range a.Classes {
			sum += n
			if n < 0 {
				t.Errorf("%s: %d rows are %s", a.Keyspace, n, c)
			}
		}
		if sum != a.Rows || a.Check != "ok" {
			t.Errorf("%s: %d rows, %v add up to %d: %s", a.Keyspace, a.Rows, a.Classes, sum, a.Check)
		}
	}
}

// TestSkipExisting converts databases of every engine into a server that has a third of the keys. Skipped records
// must be counted with all their rows and elements, and the rest copied as if converted alone.
func TestSkipExisting(t *testing.T) {
	s := redistest.Start(t)
	server, c := "redis://"+s.Addr, s.Client()
	made := filepath.Join(t.TempDir(), "made")
	ok(t, "convert", golden(t, "pika400-basic"), "rdb:"+made+".rdb", "--rdb-version", "10", "--allow-loss", "stream-groups,module")
	ok(t, "convert", "rdb:"+made+".rdb", "aof:"+made)
	for name, src := range someOf(map[string]string{
		"nemo": golden(t, "nemo-basic"), "blackwidow": golden(t, "bw-basic"), "floyd": golden(t, "pika400-basic"), "pika 3.5": golden(t, "pika35-edge"),
		"ardb": golden(t, "ardb-rocksdb-basic"), "ardb on LMDB": golden(t, "ardb-lmdb-basic"), "kvrocks": golden(t, "kvrocks-mixed"),
		"kvrocks in slots": golden(t, "kvrocks-cluster"), "rdb": made + ".rdb", "aof": "aof:" + made,
	}, "nemo", "kvrocks in slots", "rdb") {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir()) // for reports
			db := "0"
			if strings.Contains(name, "kvrocks") {
				db = "__namespace"
			}
			common := []string{"--db", db, "--now", "2100-01-01T00:00:00Z", "--on-conflict", "rename", "--allow-loss", "module",
				src, server}
			run := func(args ...string) (*convert.Report, string) {
				t.Helper()
				out := ok(t, append(append([]string{"convert"}, args...), common...)...)
				r := ofServer(t)
				addsUp(t, r)
				return r, out
			}
			c.Must(t, "FLUSHALL")
			full, _ := run()
			keys := c.Strings(t, "KEYS", "*")
			slices.Sort(keys)
			c.Must(t, "FLUSHALL")
			var rest []string
			had := 0
			for _, key := range keys {
				h := fnv.New32()
				h.Write([]byte(key))
				if h.Sum32()%3 == 0 {
					c.Must(t, "SET", key, "mine")
					had++
				} else {
					rest = append(rest, "hex:"+hex.EncodeToString([]byte(key)))
				}
			}
			some, out := run("--skip-existing")
			if n, left := redistest.Text(c.Must(t, "DBSIZE")), mine(t, c, keys); n != fmt.Sprint(len(keys)) || left != had {
				t.Errorf("%s of %d keys, %d of %d left alone", n, len(keys), left, had)
			}
			if got, want := partCounts(some.Parts, some.Skipped), partCounts(full.Parts); !maps.Equal(got, want) {
				t.Errorf("written and skipped: %v, want %v", got, want)
			}
			if n, _ := some.SkippedRecords(); n != int64(had) || some.Records() != int64(len(keys)-had) {
				t.Errorf("%d skipped, %d written, of %d and %d", n, some.Records(), had, len(keys)-had)
			}
			if got, want := rowsIn(some, "copied", "index", "skipped"), rowsIn(full, "copied", "index"); !maps.Equal(got, want) {
				t.Errorf("rows %v, want %v", got, want)
			}
			for _, text := range []string{"skipped: their keys exist on the server", "the ledger adds up", "its key counts do not show whether all were written"} {
				if !strings.Contains(out, text) {
					t.Errorf("no %q in %s", text, out)
				}
			}
			out = ok(t, append([]string{"convert", "--dry-run", "--skip-existing"}, common...)...)
			if words := strings.Join(strings.Fields(out), " "); !strings.Contains(words, "all 0 0 skipped") ||
				!strings.Contains(words, fmt.Sprintf("all %d ", len(keys))) || strings.Contains(words, "copied") {
				t.Errorf("a dry run, when all are there: %s", out)
			}
			if slices.ContainsFunc(full.Losses, func(l convert.LossKind) bool { return l.Kind == record.LossSameName }) {
				return // the source names these keys differently
			}
			c.Must(t, "FLUSHALL")
			if err := os.WriteFile("rest", []byte(strings.Join(rest, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
			alone, _ := run("--key-file", "rest")
			for _, class := range []string{"copied", "index"} {
				if got, want := rowsIn(some, class), rowsIn(alone, class); !maps.Equal(got, want) {
					t.Errorf("%s: %v, but %v without those that exist", class, got, want)
				}
			}
			if got, want := fmt.Sprint(some.Parts), fmt.Sprint(alone.Parts); got != want {
				t.Errorf("fingerprints %s, want %s", got, want)
			}
		})
	}
}

// TestSkipExistingResumed kills a conversion in the middle. The journal has its skipped records; the resumed process
// must also report them, and skip the records that the first one wrote in an unfinished part.
func TestSkipExistingResumed(t *testing.T) {
	s := redistest.Start(t)
	t.Chdir(t.TempDir())
	c := s.Client()
	for db := range 3 {
		c.Must(t, "SELECT", fmt.Sprint(db))
		for i := range 200 {
			c.Must(t, "RPUSH", fmt.Sprint("list", i), strings.Repeat("x", 1000*(3-db)), fmt.Sprint(i))
			c.Must(t, "SET", fmt.Sprint("string", i), fmt.Sprint(i))
		}
	}
	c.Must(t, "SAVE")
	src, server := filepath.Join(s.Dir, "source.rdb"), "redis://"+s.Addr
	if err := os.Rename(filepath.Join(s.Dir, "dump.rdb"), src); err != nil {
		t.Fatal(err)
	}
	c.Must(t, "FLUSHALL")
	for db := range 3 {
		c.Must(t, "SELECT", fmt.Sprint(db))
		for i := range 50 {
			c.Must(t, "SET", fmt.Sprint("list", i), "mine")
		}
	}
	args := []string{"convert", "--skip-existing", "--workers", "1", src, server}
	first := func() bool {
		work, err := filepath.Glob("redis-*.kvferry")
		if err != nil || len(work) != 1 {
			return false
		}
		data, err := os.ReadFile(filepath.Join(work[0], "journal"))
		if err != nil || !strings.Contains(string(data), `"skipped":[{`) {
			return false
		}
		n, _ := c.Must(t, "DBSIZE").(int64)
		return n >= 60 // some of the second are written, and more than a temporary key
	}
	c.Must(t, "SELECT", "1")
	killedWhen(t, "the first database is done", first, append(args, "--rate", "300KiB")...)
	ok(t, append(args, "--resume")...)
	r := ofServer(t)
	addsUp(t, r)
	if got, want := partCounts(r.Parts, r.Skipped), partCounts([]convert.PartDigest{
		part("0", "string", 200, 200), part("0", "list", 200, 400), part("1", "string", 200, 200), part("1", "list", 200, 400),
		part("2", "string", 200, 200), part("2", "list", 200, 400)}); !maps.Equal(got, want) {
		t.Errorf("written and skipped: %v, want %v", got, want)
	}
	skipped := map[string]int64{}
	for _, p := range r.Skipped {
		skipped[string(p.DB)] += p.Records
	}
	if skipped["0"] != 50 || skipped["1"] <= 50 || skipped["1"] == 400 || skipped["2"] != 50 {
		t.Errorf("skipped by database: %v", skipped)
	}
	for db, n := range rowsIn(r, "skipped") {
		if want := skipped[db[:1]]; n != want {
			t.Errorf("%s: %d rows are skipped, want %d", db, n, want)
		}
	}
}

func part(db, typ string, records, elements int64) convert.PartDigest {
	return convert.PartDigest{DB: jsonl.Text(db), Type: typ, Digest: record.Digest{Records: records, Elements: elements}}
}

// mine counts the keys that still have their original value.
func mine(t *testing.T, c *redistest.Client, keys []string) (n int) {
	for _, key := range keys {
		if redistest.Text(c.Must(t, "TYPE", key)) == "string" && redistest.Text(c.Must(t, "GET", key)) == "mine" {
			n++
		}
	}
	return n
}
