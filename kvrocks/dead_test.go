package kvrocks_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/store/rocks"
)

// TestDead: deleted records whose rows are still on disk come back, and their unknown properties are reported.
func TestDead(t *testing.T) {
	for name, want := range map[string][]string{
		"kvrocks-basic":   {`"type":"list","key":"QzpkZWFkOmw=","expire_at_ms":0,"value":["eA==","eQ==","eg=="]`, `"type":"string","key":"VzpkZWFk","expire_at_ms":0,"value":"eA=="`},
		"kvrocks-cluster": {`"type":"list","key":"e2J9ZGVhZDps","expire_at_ms":0,"value":["eA==","eQ==","eg=="]`, `"type":"zset"`, `"type":"hash"`},
	} {
		t.Run(name, func(t *testing.T) {
			src := formattest.Open(t, kvrocks.New(), golden(t, name), &format.OpenOptions{Store: rocks.Open})
			dead := src.(format.Undead)
			dbs, err := dead.DeadDatabases()
			if err != nil {
				t.Fatal(err)
			}
			for _, db := range src.Databases() {
				if !slices.Contains(dbs, db) {
					t.Errorf("namespace %s is not there", db)
				}
			}
			var told []string
			var got []byte
			for _, db := range dbs {
				r, err := dead.DeadRecords(context.Background(), db, record.AllTypes, format.Span{},
					&format.Env{Now: goldenNow, TempDir: t.TempDir()},
					func(key []byte, typ record.Type, what string) { told = append(told, fmt.Sprint(typ, " ", what)) })
				if err != nil {
					t.Fatal(err)
				}
				if !src.Sorted() {
					r = sorted.Records(r, sorted.Options{TempDir: t.TempDir()})
				}
				got = append(got, formattest.Lines(t, r)...)
			}
			for _, w := range want {
				if !bytes.Contains(got, []byte(w)) {
					t.Errorf("not there: %s", w)
				}
			}
			live := formattest.Lines(t, sorted.Records(formattest.Records(t, src, kvrocks.DefaultNamespace,
				&format.Env{Now: goldenNow}).Reader, sorted.Options{TempDir: t.TempDir()}))
			alive := map[string]bool{}
			for _, h := range heads(t, live) {
				alive[h.Key] = true
			}
			gone := heads(t, got)
			for _, h := range gone {
				if h.DB == kvrocks.DefaultNamespace && alive[h.Key] {
					t.Errorf("%s is alive", h.Key)
				}
			}
			if len(alive) < 50 || len(gone) < 10 {
				t.Errorf("%d records are alive, %d dead", len(alive), len(gone))
			}
			if slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "string ") && strings.Contains(s, " elements ") }) {
				t.Errorf("the bytes of a bitmap are taken for elements: %q", told)
			}
			if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "inferred from its rows") }) {
				t.Errorf("told: %q", told)
			}
		})
	}
}

// heads returns the lines of a dump without the values.
func heads(t *testing.T, dump []byte) (out []formattest.Head) {
	t.Helper()
	for _, l := range bytes.Split(bytes.TrimSpace(dump), []byte("\n")) {
		h, _, err := formattest.SplitLine(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
	}
	return out
}
