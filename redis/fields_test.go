package redis

import (
	"context"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// A fingerprint leaves out expired fields, so it equals the fingerprint of a file converted from the source.
func TestFingerprintDropsExpiredFields(t *testing.T) {
	for _, name := range []string{"rdb-r74-basic", "rdb-r74rc1-basic", "rdb-v90-basic", "rdb-r70-basic"} {
		path, ok := goldens(t)[name]
		if !ok {
			continue // only the project's own files exist
		}
		src := openPath(t, path)
		got, err := inspect.Fingerprint(context.Background(), &inspect.Scan{Source: src, Now: truthTime, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var want record.Fingerprint
		for _, db := range src.Databases() {
			r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{},
				&format.Env{Now: truthTime, TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			sel := filter.Selection{}
			want.Merge(
				formattest.Sum(t, sel.Apply(context.Background(), r, filter.ApplyOptions{Now: truthTime, TempDir: t.TempDir()})))
		}
		formattest.CheckEqual(t, got, &want, false)
	}
}
