package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
)

// matrixTargets are the targets of the matrix.
var matrixTargets = []place{{format: "nemo", store: "rocksdb"}, {format: "blackwidow", store: "rocksdb"},
	{format: "ardb", store: "rocksdb"}, {format: "ardb", store: "leveldb"}, {format: "kvrocks", store: "rocksdb"},
	{format: "pika3.5", store: "rocksdb"}, {format: "floyd", store: "rocksdb"}, {format: "ssdb", store: "leveldb"}}

// matrixGoldens are the databases written by the original engines.
var matrixGoldens = map[string]place{
	"nemo-basic-zlib": matrixTargets[0], "bw-basic": matrixTargets[1], "bw-edge": matrixTargets[1],
	"kvrocks-cluster": matrixTargets[4], "kvrocks-mixed": matrixTargets[4], "kvrocks-modules": matrixTargets[4], "kvrocks-ingest": matrixTargets[4],
	"keydbflash-basic":   {format: "keydbflash", store: "rocksdb"},
	"ardb-rocksdb-basic": matrixTargets[2], "ardb-leveldb-basic": matrixTargets[3], "ardb-lmdb-basic": {format: "ardb", store: "lmdb"},
	"pika35-edge": matrixTargets[5], "pika353-zver": {format: "pika3.5", store: "rocksdb", resort: true}, "pika4-edge": matrixTargets[6],
	"ssdb-basic": matrixTargets[7], "ssdb-odd": matrixTargets[7],
}

// matrixAside lists goldens that would add only time: they differ from the above only in codecs or expiry in seconds,
// or hold no Redis data.
var matrixAside = []string{"nemo-basic", "pika400-basic", "rocks-modern"}

// notes are the kinds of losses that need no permission.
var notes = []string{record.LossHyperLogLog, record.LossGroupProgress, record.LossDatabase}

// keepAll is the conflict mode of most of the matrix.
var keepAll = conflict{flag: "keep=zset,list", prefer: []record.Type{record.ZSet, record.List}}

// TestMatrix converts every format to every format and back.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, name := range fixtures.Names() {
		if slices.Contains(matrixAside, name) {
			continue
		}
		p, known := matrixGoldens[name]
		if !known {
			t.Errorf("golden %s is not in the matrix", name)
			continue
		}
		p.path = golden(t, name)
		matrixRow(t, name, p)
	}
	for i, p := range some(matrixTargets, 5) {
		p.path = generated(t, p, uint64(i+1))
		matrixRow(t, "generated "+p.format+" "+p.store, p)
	}
}

func matrixRow(t *testing.T, name string, src place) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		m := readModel(t, src)
		for _, dst := range matrixTargets {
			t.Run("to "+dst.format+" "+dst.store, func(t *testing.T) {
				dst.path = filepath.Join(fastDir(t), "there")
				there := crossed(t, m, src, dst, keepAll)
				if dst.format == src.format && dst.store == src.store || formatOf(t, src.format).Limits().NoTarget != "" {
					return
				}
				back := src
				if back.store == "lmdb" {
					back.store = "rocksdb"
				}
				back.path = filepath.Join(fastDir(t), "back")
				crossed(t, there, dst, back, keepAll)
			})
		}
	})
}

// fastDir returns a temporary directory in memory if possible: conversions spend most of their time waiting for the
// disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kvferry-matrix-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// crossed converts src, whose model is m, compares the result with the prediction and returns the model of the
// target.
func crossed(t *testing.T, m *model, src, dst place, mode conflict, flags ...string) *model {
	t.Helper()
	one := m.home
	if dst.format == "ssdb" && (len(m.dbs) > 1 || m.dbs[0] != "0") { // which has one database
		if !slices.Contains(m.dbs, one) {
			one = m.dbs[0]
		}
		m = m.only(one)
		flags = append(flags, "--db", one)
	}
	want := m.predict(t, dst, mode)
	args := append([]string{"convert", src.String(), dst.String(), "--on-conflict", mode.flag}, flags...)
	if kinds := want.refusedKinds(); len(kinds) > 0 {
		args = append(args, "--allow-loss", strings.Join(kinds, ","))
	}
	ok(t, args...)
	rep := reportOf(t, dst.path)
	if !rep.Proof.Done {
		t.Error("not proved")
	}
	losses := map[string]int64{}
	for _, l := range rep.Losses {
		losses[l.Kind] = l.Count
		possible(t, src, dst, l.Kind)
	}
	if !maps.Equal(losses, want.losses) {
		t.Errorf("losses %v, predicted %v", losses, want.losses)
	}
	got := readModel(t, dst)
	if diff := want.out.fingerprint().Diff(got.fingerprint(), false); len(diff) > 0 {
		t.Errorf("other fingerprints than predicted: %v", diff)
	}
	return got
}

// only is what is of one database, which becomes the only one.
func (m *model) only(db string) *model {
	out := *m
	out.dbs, out.home, out.records, out.members = []string{"0"}, "0", nil, map[string]int64{"0": m.members[db]}
	for _, r := range m.records {
		if r.DB == db {
			r.DB = "0"
			out.records = append(out.records, r)
		}
	}
	return &out
}

// refusedKinds are those that stop a conversion unless they are allowed.
func (p *prediction) refusedKinds() (out []string) {
	for _, kind := range slices.Sorted(maps.Keys(p.losses)) {
		if !slices.Contains(notes, kind) && kind != record.LossSameName {
			out = append(out, kind)
		}
	}
	return out
}

// generated writes random records of all kinds that a format holds, in several databases. Nothing may change them.
func generated(t *testing.T, p place, seed uint64) string {
	t.Helper()
	dir := written(t, p, seed)
	unchanged(t, dir)
	return dir
}

// written writes the records of generated.
func written(t *testing.T, p place, seed uint64) string {
	t.Helper()
	f := formatOf(t, p.format)
	d := p.driver(t)
	dbs := []string{"0", "3"}
	if !f.Limits().Numbered {
		dbs = []string{"0", "users", "中文"}
	}
	if f.Limits().MaxDBs == 1 {
		dbs = dbs[:1]
	}
	dir := filepath.Join(fastDir(t), "generated")
	target, err := f.Create(context.Background(), dir, &format.CreateOptions{Create: d.Create, Kind: d.Name, DBs: dbs,
		Layout: format.LayoutDB, TempDir: t.TempDir(), Now: testNow})
	if err != nil {
		t.Fatal(err)
	}
	for i, db := range dbs {
		o := fixtures.Options{DB: db, Limits: f.Limits(), Now: testNow, NarrowInts: p.format == "ardb", Expired: true}
		for j, group := range target.Groups() {
			o.Types = group & f.Limits().Types & record.RedisTypes // module values are specific to each server
			w, err := target.Shard(i*len(target.Groups())+j, db, group, 8<<20)
			if err != nil {
				t.Fatal(err)
			}
			r := record.Merge(fixtures.Records(seed*100+uint64(i), 70, o), logLogs(group))
			if err := fixtures.Pump(w, r); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := target.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// logLogs returns strings that are HyperLogLogs of every dialect.
func logLogs(group record.TypeSet) record.Reader {
	var out []small
	if group.Has(record.String) {
		sparse := "HYLL\x01\x00\x00\x00" + strings.Repeat("\x00", 8) + "\x7f\xff"
		stale := []byte(sparse)
		stale[15] = 0x80
		out = []small{
			smallRecord(record.String, "hll:a", sparse),
			smallRecord(record.String, "hll:b", string(stale)),
			smallRecord(record.String, "hll:c", string(stale[:8])+"\x05"+string(stale[9:])+strings.Repeat("\x00", 9)),
			smallRecord(record.String, "hll:d", "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"+strings.Repeat("\x00", denseLogLog-16)),
			smallRecord(record.String, "hll:e", strings.Repeat("\x01", rawLogLog)),
			smallRecord(record.String, "hll:f", "HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"),
		}
	}
	return record.Gather(&smallReader{left: out}, nil)
}

// TestMatrixConflicts converts a name with several types to Ardb in each conflict mode.
func TestMatrixConflicts(t *testing.T) {
	t.Parallel()
	generatedNemo, generatedBW := matrixTargets[0], matrixTargets[1]
	generatedNemo.path, generatedBW.path = generated(t, generatedNemo, 11), generated(t, generatedBW, 12)
	for _, src := range some([]place{generatedNemo, generatedBW}, 1) {
		m := readModel(t, src)
		for _, dst := range matrixTargets {
			if dst.limits(t).SameName {
				continue
			}
			for _, mode := range []conflict{
				{flag: "rename", rename: true},
				{flag: "keep=hash,string,stream,set", prefer: []record.Type{record.Hash, record.String, record.Stream, record.Set}},
			} {
				dst.path = filepath.Join(fastDir(t), "there")
				crossed(t, m, src, dst, mode)
			}
			dst.path = filepath.Join(fastDir(t), "refused")
			want := m.predict(t, dst, conflict{})
			r := kvferry(t, "convert", src.String(), dst.String(), "--allow-loss",
				strings.Join(append(want.refusedKinds(), record.LossHyperLogLog), ","))
			text := fmt.Sprintf("%d × same-name", want.losses[record.LossSameName])
			if r.code != cli.ExitLossy || !strings.Contains(r.stderr, text) {
				t.Errorf("%s: exit %d, want %d and %q in %s", src, r.code, cli.ExitLossy, text, r.stderr)
			}
		}
	}
}

// TestMatrixOneDatabase converts one of several namespaces to its own directory.
func TestMatrixOneDatabase(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"rocksdb", "leveldb", "lmdb"} {
		src := place{format: "ardb", store: store, path: golden(t, "ardb-"+store+"-basic")}
		m := readModel(t, src)
		for _, db := range m.dbs {
			one := &model{format: src.format, dbs: []string{"0"}}
			for _, r := range m.records {
				if r.DB == db {
					r.DB = "0"
					one.records = append(one.records, r)
				}
			}
			for _, dst := range matrixTargets[:2] {
				dst.path = filepath.Join(fastDir(t), "there")
				crossed(t, one, src, dst, keepAll, "--db", db, "--layout", "flat")
			}
		}
	}
}

// TestMatrixStreamGroups checks that consumer groups are a loss of their own if the stream is kept, and part of the
// stream's loss otherwise.
func TestMatrixStreamGroups(t *testing.T) {
	id := []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	entry := record.Element{Name: id, Value: record.AppendPair(nil, []byte("f"), []byte("v"))}
	dir := buildSmall(t, formatOf(t, "ardb"), smallRecord(record.String, "a", "1"),
		small{typ: record.Stream, key: "k", elems: []record.Element{entry}},
		small{typ: record.Stream, key: "l", elems: []record.Element{entry}})
	alter(t, filepath.Join(dir, "rocksdb"), func(r *rows) {
		for _, group := range []string{"g", "h"} {
			key := codec.AppendKey(nil, nil, []byte("k"), codec.KindPending, codec.TextData([]byte(group)), codec.Data{})
			value := codec.AppendValue(nil, &codec.Value{Kind: codec.KindPending}, codec.TextData(id))
			r.kv["0"][string(key)] = string(value)
		}
	})
	src := place{format: "ardb", store: "rocksdb", path: dir}
	m := readModel(t, src)
	for _, dst := range matrixTargets {
		want := m.predict(t, dst, keepAll)
		if n := want.losses[record.LossStreamGroups]; n != int64(want.out.count(record.Stream))/2 {
			t.Errorf("%s: predicted %d streams with groups", dst, n)
		}
		dst.path = filepath.Join(fastDir(t), "there")
		if r := kvferry(t, "convert", src.String(), dst.String()); r.code != cli.ExitLossy {
			t.Errorf("%s: exit %d, %s", dst, r.code, r.stderr)
		}
		crossed(t, m, src, dst, keepAll)
	}
}

func (m *model) count(typ record.Type) (n int) {
	for i := range m.records {
		if m.records[i].Type == typ {
			n++
		}
	}
	return n
}

// TestMatrixOnePass checks that an Ardb database is read only once, that every row is accounted for, and that the
// output does not depend on the number of workers.
func TestMatrixOnePass(t *testing.T) {
	t.Parallel()
	for name, src := range matrixGoldens {
		if src.format != "ardb" {
			continue
		}
		src.path = golden(t, name)
		rows := countRows(t, src)
		for _, dst := range matrixTargets[:2] {
			var tree string
			for _, workers := range []string{"1", "3"} {
				dst.path = filepath.Join(fastDir(t), "there")
				ok(t, "convert", src.String(), dst.String(), "--workers", workers, "--allow-loss", "expiry-ms,key-too-long,score-range,stream")
				rep := reportOf(t, dst.path)
				if rep.Tasks != len(rep.Source.DBs) {
					t.Errorf("%s: %d tasks for %d databases", name, rep.Tasks, len(rep.Source.DBs))
				}
				var total int64
				for _, a := range rep.Ledger {
					total += a.Rows
				}
				if total != rows {
					t.Errorf("%s: the ledger has %d rows of %d", name, total, rows)
				}
				got := treeBytes(t, dst.path)
				if tree == "" {
					tree = got
				} else if got != tree {
					t.Errorf("%s: another tree with %s workers", name, workers)
				}
			}
		}
	}
}

// countRows counts the rows of all keyspaces.
func countRows(t *testing.T, p place) (n int64) {
	t.Helper()
	src := p.open(t)
	defer src.Close()
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, _, err := it.Next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
