package aof

import (
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// TestImports: a server deletes the keys of slots whose import has not succeeded by the end of the log. The log was made by
// Valkey 9.1, which answered with the same keys after a start.
func TestImports(t *testing.T) {
	name := strings.Repeat("ab", 20)
	began := "SET {f}old v\nCLUSTER SYNCSLOTS ESTABLISH SOURCE " + name + " NAME " + name + " SLOTSRANGE 0 1 3168 3168\nSET {f}a v\nSET {a}b v"
	base := strings.Replace(snapshotOf(0, slices.Concat([]byte("\xf3\x28"+name+"\x01\x4c\x60\x4c\x60"), keyOf("{f}a", "v"),
		keyOf("{a}b", "v"))), "REDIS0011", "VALKEY080", 1)
	base = base[:len(base)-8] + strings.Repeat("\x00", 8) // without a checksum
	note := "half-imported /"
	for log, want := range map[string]string{
		commandsOf(began): "0/{a}b|" + note,
		commandsOf(began + "\nCLUSTER SYNCSLOTS FINISH STATE SUCCESS NAME " + name + " MESSAGE x"):           "0/{a}b 0/{f}a 0/{f}old|",
		commandsOf(began + "\ncluster syncslots finish name " + name + " state failed\nSET {f}c v"):          "0/{a}b 0/{f}c|",
		commandsOf(began + "\nFLUSHALL\nSET {f}c v"):                                                         "0/{f}c|",
		commandsOf(began + "\nSELECT 1\nSET {f}c v\nSELECT 0\nFLUSHDB"):                                      "|",
		commandsOf("SET {f}a v\nCLUSTER SYNCSLOTS ESTABLISH SOURCE x NAME x SLOTSRANGE 3168 3168"):           "0/{f}a|", // servers refuse the name
		commandsOf("SET {f}a v\nCLUSTER SYNCSLOTS ESTABLISH NAME " + name + " SLOTSRANGE 3168"):              "0/{f}a|",
		base + commandsOf("SET {f}c v"):                                                                      "0/{a}b|" + note,
		base + commandsOf("SET {f}c v\nCLUSTER SYNCSLOTS FINISH STATE SUCCESS NAME "+name):                   "0/{a}b 0/{f}a 0/{f}c|",
		base + commandsOf("CLUSTER SYNCSLOTS FINISH STATE SUCCESS NAME "+strings.Repeat("x", 40)+"\nPING x"): "0/{a}b|" + note,
		base + commandsOf("NEW {f}a"):                                                                        "0/{a}b|" + note + " aof-command 0/",
	} {
		records, found, _ := replayed(t, log)
		var keys []string
		for id := range records {
			keys = append(keys, id)
		}
		slices.Sort(keys)
		slices.Sort(found)
		slices.Reverse(found)
		if got := strings.Join(keys, " ") + "|" + strings.Join(found, " "); got != want {
			t.Errorf("%q: %s, want %s", log, got, want)
		}
	}
}

// TestKeepImported: a choice of the reader keeps such keys, and the ledger counts them as half imported without it.
func TestKeepImported(t *testing.T) {
	name := strings.Repeat("ab", 20)
	log := commandsOf("CLUSTER SYNCSLOTS ESTABLISH NAME " + name + " SLOTSRANGE 3168 3168\nSET {f}a v\nSET {a}b v")
	for keep, want := range map[bool][2]int64{false: {1, 1}, true: {2, 0}} {
		var detail string
		report := func(f record.Finding) { detail = f.Detail }
		src, err := New().Open(t.Context(), tree(t, map[string]string{"a.aof": log})+"/a.aof",
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Report: report, HalfImported: keep}})
		if err != nil {
			t.Fatal(err)
		}
		var ledger record.Ledger
		got := [2]int64{int64(len(contents(t, src, 1)))}
		r := formattest.RecordsOf(t, src, "0", record.AllTypes, format.Span{},
			&format.Env{TempDir: t.TempDir(), Ledger: &ledger, Report: report})
		for _, err = r.Next(); err == nil; _, err = r.Next() {
		}
		r.Close()
		for _, tally := range ledger.Snapshot() {
			got[1] += tally.Rows[record.HalfImported]
		}
		if half := src.(interface{ Half() int64 }).Half(); half != want[1] {
			t.Errorf("keep %v: %d keys are no records, want %d", keep, half, want[1])
		}
		src.Close()
		if got != want || !strings.Contains(detail, "the server was importing") {
			t.Errorf("keep %v: %v, want %v; %s", keep, got, want, detail)
		}
	}
}
