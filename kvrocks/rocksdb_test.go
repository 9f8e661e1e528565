//go:build rocksdb

package kvrocks_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store/grocks"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// familyNames lists the families that the server opens, in its order.
var familyNames = []string{"default", "metadata", "zset_score", "pubsub", "propagate", "stream", "search", "index"}

// filter is the server's compaction filter of the families below metadata: it drops what has no metadata row of its
// version. Like the server it takes keys apart by what the cluster mode says.
type filter struct {
	slotted bool
	alive   map[string]codec.Meta
	dropped int
}

func (f *filter) Name() string { return "kvrocks sub-keys" }

func (f *filter) SetIgnoreSnapshots(bool) {}

func (f *filter) Destroy() {}

func (f *filter) Filter(_ int, key, _ []byte) (remove bool, newVal []byte) {
	k, err := codec.DecodeSubKey(key, f.slotted)
	if err != nil {
		f.dropped++
		return true, nil
	}
	m, ok := f.alive[string(codec.AppendMetaKey(nil, codec.MetaKey{Namespace: k.Namespace, Slot: k.Slot, Key: k.Key}))]
	remove = !ok || m.Version != k.Version || m.Kind == codec.KindString || m.Kind == codec.KindJSON
	if remove {
		f.dropped++
	}
	return remove, nil
}

// serve opens a database like the server: with the families that it creates, and its filter.
func serve(t *testing.T, dir string, f *filter) (*grocksdb.DB, []*grocksdb.ColumnFamilyHandle) {
	t.Helper()
	opts := grocksdb.NewDefaultOptions()
	opts.SetCreateIfMissingColumnFamilies(true)
	var families []*grocksdb.Options
	for _, name := range familyNames {
		o := grocksdb.NewDefaultOptions()
		o.SetDisableAutoCompactions(true)
		if name == "default" || name == "zset_score" || name == "stream" {
			o.SetCompactionFilter(f)
		}
		families = append(families, o)
	}
	db, handles, err := grocksdb.OpenDbColumnFamilies(opts, dir, familyNames, families)
	if err != nil {
		t.Fatal(err)
	}
	return db, handles
}

// TestServed: RocksDB, used like Kvrocks does, serves the target: no row is lost with a held snapshot, new writes, a
// compaction of every family under the server's filter, a checkpoint and a restart.
func TestServed(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "new")
		o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.RedisTypes}
		dst := formattest.Create(t, kvrocks.New(), dir,
			&format.CreateOptions{Create: build.Create, DBs: []string{o.DB}, Cluster: cluster,
				TempDir: t.TempDir(), Now: fixtures.Clock, Reopen: &format.OpenOptions{Store: rocks.Open}})
		fillShard(t, dst, 0, o.DB, 0, fixtures.Records(7, 500, o))
		formattest.Finish(t, dst).Close()
		want := formattest.Sum(t, fixtures.Records(7, 500, o))
		oracle := formattest.Open(t, kvrocks.New(), dir, &format.OpenOptions{Store: grocks.Open})
		checkClean(t, oracle, o.DB, 0, want)
		oracle.Close()

		f := &filter{slotted: cluster, alive: map[string]codec.Meta{}}
		db, handles := serve(t, filepath.Join(dir, "db"), f)
		load(t, db, handles[1], f)
		snapshot := db.NewSnapshot()
		write(t, db, handles, f)
		for _, h := range handles {
			if err := db.FlushCF(h, grocksdb.NewDefaultFlushOptions()); err != nil {
				t.Fatal(err)
			}
			db.CompactRangeCF(h, grocksdb.Range{})
		}
		db.ReleaseSnapshot(snapshot)
		for _, h := range handles {
			db.CompactRangeCF(h, grocksdb.Range{})
		}
		if f.dropped > 0 {
			t.Errorf("cluster %v: the filter dropped %d rows", cluster, f.dropped)
		}
		check, err := db.NewCheckpoint()
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "checkpoint")
		if err := check.CreateCheckpoint(copied, 0); err != nil {
			t.Fatal(err)
		}
		check.Destroy()
		for _, h := range handles {
			h.Destroy()
		}
		db.Close()
		for _, at := range []string{dir, copied} {
			src := formattest.Open(t, kvrocks.New(), at, &format.OpenOptions{Store: rocks.Open})
			var l record.Ledger
			r := formattest.Records(t, src, o.DB, &format.Env{Now: fixtures.Clock, Ledger: &l})
			got := formattest.Sum(t, r).Parts()
			for p, d := range want.Parts() {
				if p.Type == record.Hash { // and the one that was written
					d.Records, d.Elements = d.Records+1, d.Elements+1
				}
				g := got[p]
				if g.Records != d.Records || g.Elements != d.Elements || p.Type != record.Hash && g.Millis != d.Millis {
					t.Errorf("%s: cluster %v: %s: %+v, want %+v", at, cluster, p.Type, g, d)
				}
			}
			formattest.CheckLedger(t, &l)
		}
	}
}

// load reads the metadata for the filter.
func load(t *testing.T, db *grocksdb.DB, h *grocksdb.ColumnFamilyHandle, f *filter) {
	t.Helper()
	it := db.NewIteratorCF(grocksdb.NewDefaultReadOptions(), h)
	defer it.Close()
	for it.SeekToFirst(); it.Valid(); it.Next() {
		m, err := codec.DecodeMeta(it.Value().Data())
		if err != nil {
			t.Fatal(err)
		}
		f.alive[string(it.Key().Data())] = m
	}
}

// write adds a hash as the server would.
func write(t *testing.T, db *grocksdb.DB, handles []*grocksdb.ColumnFamilyHandle, f *filter) {
	t.Helper()
	key, slot := []byte("\xff\xffnew"), codec.NoSlot
	if f.slotted {
		slot = codec.Slot(key)
	}
	ns := []byte(kvrocks.DefaultNamespace)
	meta := codec.Meta{Wide: true, Kind: codec.KindHash, Version: 1 << 61, Size: 1}
	raw := codec.AppendMetaKey(nil, codec.MetaKey{Namespace: ns, Slot: slot, Key: key})
	f.alive[string(raw)] = meta
	b := grocksdb.NewWriteBatch()
	b.PutLogData([]byte("2"))
	b.PutCF(handles[1], raw, codec.AppendMeta(nil, meta))
	b.PutCF(handles[0], codec.AppendSubKey(nil,
		codec.SubKey{Namespace: ns, Slot: slot, Key: key, Version: 1 << 61, Sub: []byte("f")}), binary.AppendUvarint(nil, 1))
	if err := db.Write(grocksdb.NewDefaultWriteOptions(), b); err != nil {
		t.Fatal(err)
	}
}

// TestLoaded: a database with rows ingests the tables like the server's SST LOAD, folder by folder, and then holds the
// rows of both.
func TestLoaded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.RedisTypes}
	dst := formattest.Create(t, kvrocks.New(), dir, &format.CreateOptions{Create: build.Create, DBs: []string{o.DB}, SST: true,
		TempDir: t.TempDir(), Now: fixtures.Clock, Reopen: &format.OpenOptions{Store: rocks.Open}})
	fillShard(t, dst, 3, o.DB, 0, fixtures.Records(7, 500, o))
	formattest.Finish(t, dst).Close()
	want := formattest.Sum(t, fixtures.Records(7, 500, o))
	oracle := formattest.Open(t, kvrocks.New(), dir, &format.OpenOptions{Store: grocks.Open})
	checkClean(t, oracle, o.DB, 0, want)
	oracle.Close()

	other := filepath.Join(t.TempDir(), "server", "db")
	if err := os.MkdirAll(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	opts := grocksdb.NewDefaultOptions()
	opts.SetCreateIfMissing(true)
	db, err := grocksdb.OpenDb(opts, other)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	f := &filter{alive: map[string]codec.Meta{}}
	db, handles := serve(t, other, f)
	write(t, db, handles, f)
	load := grocksdb.NewDefaultIngestExternalFileOptions()
	folders, err := filepath.Glob(filepath.Join(dir, "sst", "*"))
	if err != nil || len(folders) != 4 {
		t.Fatalf("folders %q, %v", folders, err)
	}
	for _, folder := range folders { // in the order of their names
		files, err := filepath.Glob(filepath.Join(folder, "*.sst"))
		if err != nil {
			t.Fatal(err)
		}
		family := slices.IndexFunc(familyNames, func(name string) bool { return strings.Contains(files[0], name) })
		if err := db.IngestExternalFileCF(handles[family], files, load); err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
	}
	for _, h := range handles {
		h.Destroy()
	}
	db.Close()
	src := formattest.Open(t, kvrocks.New(), filepath.Dir(other), &format.OpenOptions{Store: rocks.Open})
	got := formattest.Sum(t, formattest.Records(t, src, o.DB, &format.Env{Now: fixtures.Clock})).Parts()
	for p, d := range want.Parts() {
		if p.Type == record.Hash { // and the one that was there
			d.Records, d.Elements = d.Records+1, d.Elements+1
		}
		if g := got[p]; g.Records != d.Records || g.Elements != d.Elements || p.Type != record.Hash && g.Millis != d.Millis {
			t.Errorf("%s: %+v, want %+v", p.Type, g, d)
		}
	}
}
