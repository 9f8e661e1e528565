package work

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/convert/result"
	"kvferry/record"
	"kvferry/store"
)

// listed is a store that only lists its files.
type listed struct {
	store.Store
	files []store.File
}

func (l listed) Files() []store.File { return l.files }

// TestCheckStores compares the written tables with the tables that a store lists.
func TestCheckStores(t *testing.T) {
	dir := t.TempDir()
	files := func(entries, size int64) []store.File {
		return []store.File{{Path: "1.sst", Kind: "table", Size: 10, Entries: 3},
			{Path: "2.sst", Kind: "table", Size: size, Entries: entries},
			{Path: "MANIFEST-1", Kind: "manifest", Size: 99, Entries: 7}}
	}
	for _, c := range []struct {
		name  string
		files []store.File
		wrong string
	}{
		{"as written", files(4, 20), ""},
		{"of tables that do not tell", files(-1, 20), ""},
		{"a row less", files(3, 20), "2 tables with 7 rows in 30 bytes were written, and it holds 2 with 6 rows in 30 bytes"},
		{"a table less", append(files(4, 20)[:1], files(4, 20)[2]), "it holds 1 with 3 rows in 10 bytes"},
		{"another size", files(4, 21), "db/2.sst should have 21 bytes"},
		{"a file that is nowhere", append(files(4, 20), store.File{Path: "3.sst", Kind: "table"}), "db/3.sst should have 0 bytes"},
	} {
		made := &Census{Stored: true, Tables: 2, Entries: 7, Bytes: 30,
			Files: []File{{Path: "db/1.sst", Size: 10}, {Path: "db/2.sst", Size: 20}, {Path: "db/MANIFEST-1", Size: 99}}}
		var opened Stores
		opened.list = []*openedStore{{Store: listed{files: c.files}, dir: filepath.Join(dir, "db"), of: &opened}}
		err := made.CheckStores(&opened, dir)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
		}
	}
}

// TestCounts checks that impossible totals are detected regardless of the proof.
func TestCounts(t *testing.T) {
	part := record.Part{DB: "0", Type: record.Hash}
	for _, c := range []struct {
		copied, records, elements, entries int64
		want                               string
	}{
		{5, 2, 3, 3, ""},
		{1, 2, 3, 3, "1 rows of the source were copied, which is less than the 2 records written"},
		{5, 2, 4, 3, "its tables have 3 rows, which is less than the 4 elements written"},
	} {
		var tot result.Totals
		var tally record.Tally
		tally.Rows[record.Copied], tally.Visible, tally.Entries = c.copied, c.copied, c.copied
		tot.Ledger.Add("rows", &tally)
		tot.Fingerprint.Add(part, record.Digest{Records: c.records, Elements: c.elements})
		made := &Census{Stored: true, Tables: 0, Entries: c.entries}
		err := made.CheckCounts(&tot)
		if err == nil {
			err = made.CheckStores(new(Stores), t.TempDir())
		}
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "0 tables with 3 rows in 0 bytes were written, and it holds 0 with 0 rows")):
			t.Errorf("%+v: %v", c, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
