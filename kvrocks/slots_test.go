package kvrocks_test

import (
	"testing"

	"kvferry/format"
	"kvferry/internal/formattest"
	"kvferry/internal/sorted"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/store/rocks"
)

// TestSlotSpans reads a node of a cluster in spans of keys, as a conversion that can be resumed does: together they have each
// record and each row once.
func TestSlotSpans(t *testing.T) {
	src := formattest.Open(t, kvrocks.New(), golden(t, "kvrocks-cluster"), &format.OpenOptions{Store: rocks.Open})
	read := func(l *record.Ledger, f *formattest.Findings, s format.Span) record.Reader {
		env := &format.Env{Now: goldenNow, Ledger: l, Report: f.Report, TempDir: t.TempDir()}
		r := formattest.RecordsOf(t, src, kvrocks.DefaultNamespace, record.AllTypes, s, env)
		return sorted.Records(r, sorted.Options{TempDir: t.TempDir()})
	}
	var whole record.Ledger
	var f formattest.Findings
	want := formattest.Sum(t, read(&whole, &f, format.Span{}))
	cut, err := src.Split(kvrocks.DefaultNamespace, record.AllTypes, 8)
	if err != nil || len(cut) < 4 {
		t.Fatalf("%d spans, %v", len(cut), err)
	}
	at := []string{"", "\x00", "S:12", "b:", "h:1", "h:10", "h:1\xff", "k", "s:", "x", "\xff\xff"}
	by := []format.Span{{}}
	for _, key := range at {
		by[len(by)-1].Hi = []byte(key)
		by = append(by, format.Span{Lo: []byte(key)})
	}
	for name, spans := range map[string][]format.Span{"by samples": cut, "by keys": by} {
		var l record.Ledger
		var got record.Fingerprint
		parts := 0
		for _, s := range spans {
			sum := formattest.Sum(t, read(&l, &f, s))
			got.Merge(sum)
			parts += min(1, len(sum.Parts()))
		}
		formattest.CheckEqual(t, &got, want, false)
		if parts < 4 {
			t.Errorf("%s: records in %d spans", name, parts)
		}
		for _, ks := range []string{"metadata", "default", "zset_score", "stream"} {
			if g, w := formattest.Classes(&l, ks), formattest.Classes(&whole, ks); g != w {
				t.Errorf("%s, %s: %s, want %s", name, ks, g, w)
			}
		}
	}
}
