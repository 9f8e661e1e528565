package rocks

import (
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// FuzzTable reads a table, with the checksums of its blocks made right or turned off.
func FuzzTable(f *testing.F) {
	for _, spec := range []testsst.Spec{
		{}, {NoChecksum: true, Codec: testsst.Snappy}, {NoChecksum: true, LevelDB: true}, {NoChecksum: true, Hash: true},
		{NoChecksum: true, Version: 5, UserKeys: true, Delta: true, IndexType: testsst.TwoLevelIndex},
		{NoChecksum: true, IndexType: testsst.FirstKeyIndex, Tombstones: []testsst.Entry{testsst.RangeDel("key0003", 5, "key0009")}},
		{NoChecksum: true, External: true, GlobalSeq: 1011},
	} {
		spec.BlockSize = 100
		f.Add(testsst.MakeTable(f, spec, testsst.SomeEntries(12)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, resort := range []bool{false, true} {
			fuzzTable(t, b, resort)
		}
	})
}

// fuzzTable reads a table that is all that a database has.
func fuzzTable(t *testing.T, b []byte, resort bool) {
	db := &database{version: &manifest.Version{}}
	db.env = lsm.Env{Memory: record.DefaultMemory, Merger: testsst.JoinMerger, Resort: resort, Report: func(record.Finding) {}}
	db.env.Windows.Memory = record.DefaultMemory
	defer db.Close()
	ks := &family{Keyspace: lsm.New(&db.env, "default", &store.Bytewise), st: db}
	meta := lsm.Meta{Level: 1, Number: 1, Size: int64(len(b)), MaxSeq: 1011,
		Smallest: base.AppendKey(nil, []byte("key0000"), base.Trailer(1000, base.KindPut)), Largest: base.AppendKey(nil,
			[]byte("key0033"), base.Trailer(0, base.KindPut))}
	r := db.newSource(files.Memory("table", b), &sst.Options{Comparer: ks.Comparer(), Sequence: 1011})
	ks.SetTables([]*lsm.Table{lsm.NewTable(ks.Keyspace, meta, r)})
	testsst.WalkRows(t, ks)
	ks.Unordered(func(*store.Entry) error { return nil })
	ks.Sample(3)
	describe(ks.Tables[0])
}
