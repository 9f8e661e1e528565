package command

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// rawKeys returns the visible keys of a namespace in order.
func rawKeys(t *testing.T, dir, keyspace string) (out [][]byte) {
	t.Helper()
	st, err := rocks.Open(context.Background(), dir,
		&store.Options{Comparers: []store.Comparer{codec.Comparer(), codec.LevelDBComparer()}, Merger: ardb.Merger()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, ks := range st.Keyspaces() {
		if ks.Name() != keyspace {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for {
			k, _, err := it.Next()
			if err == io.EOF {
				return out
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, slices.Clone(k))
		}
	}
	return out
}

// leveldbFormat is Ardb with LevelDB targets.
type leveldbFormat struct{ format.Format }

func (f leveldbFormat) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	o.Kind = "leveldb"
	o.Create = build.CreateLevelDB
	return f.Format.Create(ctx, dir, o)
}

// TestUndeleteArdb checks that records deleted by Ardb's server, row by row or by range, are fully restored from the
// rows behind its tombstones, without messages about losses.
func TestUndeleteArdb(t *testing.T) {
	for _, c := range []struct {
		name, store, keyspace string
		f                     format.Format
		cf                    uint64
		byRange               bool
	}{
		{"rocksdb", "rocksdb", "0", ardb.New(), ardbCF, false},
		{"rocksdb by range", "rocksdb", "0", ardb.New(), ardbCF, true},
		{"leveldb", "leveldb", "default", leveldbFormat{ardb.New()}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			expiring := smallRecord(record.String, "t", "v")
			expiring.expire = testNow.UnixMilli() + 5000
			dir := buildSmall(t, c.f, append(ardbSet(), expiring)...)
			want := ok(t, "dump", dir)
			if got := ok(t, "dump", "--dead", dir); got != "" {
				t.Errorf("before there is\n%s", got)
			}
			w := &writes{cf: c.cf, seq: 2}
			if c.byRange {
				for _, user := range []string{"h", "l", "m", "s", "t", "z"} {
					w.add("range delete", ardbKey(user, codec.KindMeta), ardbKey(user, codec.KindEnd))
				}
			} else {
				for _, k := range rawKeys(t, filepath.Join(dir, c.store), c.keyspace) {
					w.add("delete", k)
				}
			}
			appendLog(t, filepath.Join(dir, c.store), w)
			unchanged(t, dir)
			if live := ok(t, "dump", dir); live != "" {
				t.Errorf("still alive:\n%s", live)
			}
			r := kvferry(t, "dump", "--dead", dir)
			if r.code != cli.ExitOK || r.stdout != want {
				t.Errorf("exit %d, %s\n%swant\n%s", r.code, r.stderr, r.stdout, want)
			}
			// The META row of a hash with several fields leaves the size to the server.
			wanted := "kvferry: hash \"h\" in database 0: its META row has no element count; 2 elements are still on disk\n"
			if r.stderr != wanted {
				t.Errorf("said: %s", r.stderr)
			}
			if got, one := ok(t, "dump", "--dead", "--type", "set", dir), `{"db":"0","type":"set","key":"m","expire_at_ms":0,"value":["a","b"]}`+
				"\n"; got != one {
				t.Errorf("of sets alone: %s", got)
			}
			if got := ok(t, "dump", "--dead", "--db", "0", "--format", "resp", "--match", "s", dir); !strings.HasSuffix(got, "SET\r\n$1\r\ns\r\n$1\r\nv\r\n") {
				t.Errorf("as commands: %q", got)
			}
		})
	}
}

// TestUndeleteArdbHistory checks that elements deleted before the record are not restored, that rewritten records do
// not count as deleted, and that unknown details are reported.
func TestUndeleteArdbHistory(t *testing.T) {
	text, key, value := ardbText, ardbKey, ardbValue
	field := func(user, name string) []byte { return key(user, codec.KindField, text(name)) }
	hash := func(size int64) []byte { return codec.AppendValue(nil, &codec.Value{Kind: codec.KindHash, Size: size}) }
	str := func(s string) []byte { return value(codec.KindString, text(s)) }
	incr := codec.AppendValue(nil, &codec.Value{Kind: codec.KindOperand, Op: 111}, codec.IntData(1))
	w := &writes{cf: ardbCF, seq: 2}
	meta := func(user string) []byte { return key(user, codec.KindMeta) }
	// HDEL of a field, then DEL.
	w.add("put", meta("a"), hash(-1)).add("put", field("a", "1"), value(codec.KindField, text("x"))).add("put", field("a", "2"),
		value(codec.KindField, text("y")))
	w.add("delete", field("a", "1")).add("delete", meta("a")).add("delete", field("a", "2"))
	// Deleted and created again.
	w.add("put", meta("b"), str("old")).add("delete", meta("b")).add("put", meta("b"), str("new"))
	// A counter of merge operands only.
	w.add("merge", meta("c"), incr).add("merge", meta("c"), incr).add("delete", meta("c"))
	// Two incarnations: the newest counts.
	w.add("put", meta("d"), str("one")).add("delete", meta("d")).add("put", meta("d"), str("two")).add("delete", meta("d"))
	// The META row of the newest incarnation is lost.
	w.add("put", meta("e"), str("before")).add("delete", meta("e")).add("delete", meta("e"))
	// META was put below a tombstone that remains, and is lost; one field was deleted before.
	w.add("put", field("f", "1"), value(codec.KindField, text("x"))).add("put", field("f", "2"), value(codec.KindField, text("y")))
	w.add("delete", field("f", "2")).add("delete", meta("f")).add("delete", field("f", "1"))
	// No entry of META remains.
	w.add("put", key("g", codec.KindMember, text("m")), []byte{byte(codec.KindMember), 0}).add("delete",
		key("g", codec.KindMember, text("m")))
	// One of two elements is lost.
	w.add("put", meta("i"), hash(2)).add("put", field("i", "1"), value(codec.KindField, text("x")))
	w.add("range delete", meta("i"), key("i", codec.KindEnd))
	// A lone operand without effect on a missing key, as a flush leaves it.
	w.add("put", meta("j"), str("v")).add("delete", meta("j")).add("put", meta("j"), nil)
	// Only the tombstone remains.
	w.add("delete", meta("k"))

	dir := buildSmall(t, ardb.New(), smallRecord(record.String, "z", "alive"))
	appendLog(t, filepath.Join(dir, "rocksdb"), w)
	unchanged(t, dir)
	const want = `{"db":"0","type":"hash","key":"a","expire_at_ms":0,"value":[["2","y"]]}
{"db":"0","type":"string","key":"c","expire_at_ms":0,"value":"2"}
{"db":"0","type":"string","key":"d","expire_at_ms":0,"value":"two"}
{"db":"0","type":"string","key":"e","expire_at_ms":0,"value":"before"}
{"db":"0","type":"hash","key":"f","expire_at_ms":0,"value":[["1","x"]]}
{"db":"0","type":"set","key":"g","expire_at_ms":0,"value":["m"]}
{"db":"0","type":"hash","key":"i","expire_at_ms":0,"value":[["1","x"]]}
{"db":"0","type":"string","key":"j","expire_at_ms":0,"value":"v"}
`
	const said = `kvferry: hash "a" in database 0: its META row has no element count; 1 elements are still on disk
kvferry: string "e" in database 0: it was created and deleted again later, but that META row is gone; this is the state before
kvferry: hash "f" in database 0: its META row is gone: its expiry is unknown
kvferry: set "g" in database 0: its META row is gone: its expiry is unknown, nor which of its elements were deleted before it was
kvferry: hash "i" in database 0: 1 of its 2 elements are still on disk
`
	r := kvferry(t, "dump", "--dead", dir)
	if r.code != cli.ExitOK || r.stdout != want {
		t.Errorf("exit %d:\n%swant\n%s", r.code, r.stdout, want)
	}
	if r.stderr != said {
		t.Errorf("said\n%swant\n%s", r.stderr, said)
	}
	if r := kvferry(t, "dump", "--dead", "--type", "hash", "--keys-only", dir); strings.Count(r.stdout, "\n") != 3 ||
		strings.Contains(r.stderr, "string") ||
		strings.Count(r.stderr, "\n") != 3 {
		t.Errorf("of hashes alone:\n%s%s", r.stdout, r.stderr)
	}
}

// TestUndeleteLMDB checks that LMDB keeps no deleted records, as it rewrites its pages.
func TestUndeleteLMDB(t *testing.T) {
	r := kvferry(t, "dump", "--dead", golden(t, "ardb-lmdb-basic"))
	if r.code != cli.ExitFailed || r.stdout != "" || !strings.Contains(r.stderr, "LMDB keeps no deleted rows") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}
