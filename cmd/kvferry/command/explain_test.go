package command

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/nemo"
	"kvferry/record"
)

// TestExplainThreeVersions explains a hash that was deleted twice and created again: it has rows of three versions,
// one of them alive.
func TestExplainThreeVersions(t *testing.T) {
	nemoDir := buildSmall(t, nemo.New(), smallRecord(record.Hash, "k", "c=3"))
	alter(t, filepath.Join(nemoDir, "hash"), func(r *rows) {
		for i, field := range []string{"a", "b", "c"} {
			r.put("default", nemo.AppendHashKey(nil, nemo.HashKey{Key: nk, Field: []byte(field)}),
				nemo.AppendPlain(nil, nemo.Plain{Bytes: []byte("v"), Suffix: nemo.Suffix{Version: nemo.Version(i + 1)}}))
		}
		r.put("default", []byte("Hk"), nemo.AppendMeta(nil,
			nemo.Meta{Count: 1, Suffix: nemo.Suffix{Version: 3, Expiry: 1800000000}}))
	})
	bwDir := buildSmall(t, blackwidow.New(), smallRecord(record.Hash, "k", "c=3"))
	alter(t, filepath.Join(bwDir, "hashes"), func(r *rows) {
		r.kv["data_cf"] = map[string]string{}
		for i, field := range []string{"a", "b", "c"} {
			r.put("data_cf", blackwidow.AppendDataKey(nil,
				blackwidow.DataKey{Key: nk, Version: blackwidow.Version(i + 1), Name: []byte(field)}), []byte("v"))
		}
		r.put("default", nk, blackwidow.AppendMeta(nil, blackwidow.Meta{Count: 1, Version: 3, Expiry: 1800000000}))
	})
	for _, dir := range []string{nemoDir, bwDir} {
		unchanged(t, dir)
		text := ok(t, "explain", dir, "k")
		for _, want := range []string{
			"the record's meta row: expires at 2027-01-15T08:00:00Z",
			"stale: of version 1, the collection is at version 3", "stale: of version 2, the collection is at version 3",
			`"k" in database 0: hash alive, 1 element, version 3, expires at 2027-01-15T08:00:00Z`, "4 rows, 2 alive;",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("missing %q in\n%s", want, text)
			}
		}
		var doc struct {
			Key  string
			Rows []struct {
				Alive   bool
				Why     string
				Version int64
				Expires string `json:"expires_at"`
				Place   struct{ File string }
				Fields  []struct {
					Name  string
					Value any
				}
			}
			States []struct{ State string }
			Alive  int64
		}
		if err := json.Unmarshal([]byte(ok(t, "explain", "--format", "json", dir, "hex:6b")), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Key != "k" || len(doc.Rows) != 4 || doc.Alive != 2 || doc.States[0].State != "alive" {
			t.Errorf("%+v", doc)
		}
		versions := map[int64]bool{}
		for _, r := range doc.Rows {
			versions[r.Version] = true
			if r.Alive != (r.Version == 3) || r.Why == "" || !strings.HasSuffix(r.Place.File, ".sst") || len(r.Fields) == 0 {
				t.Errorf("row %+v", r)
			}
		}
		if len(versions) != 3 {
			t.Errorf("versions %v", versions)
		}
	}
}

// TestExplainEqualKeys checks that rows that the comparator considers equal are one row: the engine deletes the score
// -0.0 of a member by 0.0.
func TestExplainEqualKeys(t *testing.T) {
	zero := smallRecord(record.ZSet, "k", "a", "b")
	zero.elems[0].Score = math.Copysign(0, -1)
	dir := buildSmall(t, blackwidow.New(), zero)
	byScore := func(score float64) []byte {
		return blackwidow.AppendScoreKey(nil, blackwidow.ScoreKey{Key: nk, Version: 1, Score: score, Member: []byte("a")})
	}
	const scoreCF = 2
	appendLog(t, filepath.Join(dir, "zsets"), (&writes{cf: scoreCF, seq: 2}).add("delete", byScore(0)))
	unchanged(t, dir)
	r := kvferry(t, "explain", dir, "k")
	if r.code != cli.ExitFindings || !strings.Contains(r.stdout, "deleted by the tombstone of sequence number 2") {
		t.Errorf("exit %d, the row of score -0.0 is not deleted:\n%s", r.code, r.stdout)
	}
	if got := strings.Join(foundIn(t, dir), ", "); got != "error zset-missing-score-row" {
		t.Errorf("verify found %q", got)
	}
}

// TestExplainAgrees checks in every format that a live record has at least as many live rows as elements.
func TestExplainAgrees(t *testing.T) {
	for _, name := range some([]string{"nemo-basic", "bw-basic", "pika400-basic", "kvrocks-mixed", "ardb-rocksdb-basic",
		"ardb-lmdb-basic"}, 3) {
		src := golden(t, name)
		looked := map[string]int{}
		for _, text := range strings.Split(strings.TrimSpace(ok(t, "dump", "--keys-only", src)), "\n") {
			var l line
			if json.Unmarshal([]byte(text), &l) != nil { // a key that is not UTF-8
				continue
			}
			if looked[l.Type]++; looked[l.Type] > 3 || l.Type == "other" {
				continue
			}
			var doc struct {
				Rows   []json.RawMessage
				Alive  int64
				States []struct {
					Type, State string
					Elements    int64
				}
			}
			r := kvferry(t, "explain", "--format", "json", "--db", l.DB, "--type", l.Type, src, fmt.Sprintf("hex:%x", l.Key))
			if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
				t.Fatalf("%s: %q: %v: %s", name, l.Key, err, r.stderr)
			}
			for _, s := range doc.States {
				if s.State == "alive" && doc.Alive < s.Elements {
					t.Errorf("%s: %s %q has %d elements, but of its %d rows %d are alive", name, l.Type, l.Key, s.Elements,
						len(doc.Rows), doc.Alive)
				}
			}
		}
		if len(looked) < 2 {
			t.Errorf("%s: looked at %v", name, looked)
		}
	}
}

// TestExplainUnreadTables checks that a collection whose tables cannot be read is not called deleted, and that a key
// without rows may have some there.
func TestExplainUnreadTables(t *testing.T) {
	t.Parallel()
	src := fixtures.Unpack(t, "bw-basic")
	for _, name := range []string{"000014", "000015", "000019", "000020"} { // tables of members and scores
		if err := os.Remove(filepath.Join(src, "zsets", name+".sst")); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]string{
		"s1:z8": "zset unknown, its other rows may be in unreadable tables or blocks",
		"none":  `"none": no rows in readable tables and blocks`,
	} {
		r := kvferry(t, "explain", "--type", "zset", src, key)
		if r.code != cli.ExitFindings || !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, "deleted") {
			t.Errorf("%s: exit %d, want %s:\n%s", key, r.code, want, r.stdout)
		}
	}
	var files storeFindings
	for range maxFileFindings + 2 {
		files.report(record.Finding{Severity: record.Error})
	}
	if len(files.list) != maxFileFindings || files.more != 2 {
		t.Errorf("%d findings and %d more", len(files.list), files.more)
	}
}
