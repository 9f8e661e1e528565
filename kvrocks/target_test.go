package kvrocks_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// TestGoldensAgain rewrites the server's databases, including modules, bitmaps and consumer groups, and reads the same
// records from rows that follow the rules of the server's writers.
func TestGoldensAgain(t *testing.T) {
	src := formattest.Open(t, kvrocks.New(), golden(t, "kvrocks-modules"), &format.OpenOptions{Store: rocks.Open})
	for _, cluster := range []bool{false, true} {
		read := func() record.Reader {
			return formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{Now: goldenNow}).Reader
		}
		dir := filepath.Join(t.TempDir(), "new")
		dst := formattest.Create(t, kvrocks.New(), dir,
			&format.CreateOptions{Create: build.Create, DBs: []string{kvrocks.DefaultNamespace},
				Cluster: cluster, TempDir: t.TempDir(), Now: fixtures.Clock, Reopen: &format.OpenOptions{Store: rocks.Open}})
		fillShard(t, dst, 0, kvrocks.DefaultNamespace, 0, read())
		home := map[bool]string{false: "db/", true: "slots/"}[cluster]
		if tables, err := dst.Tables(0); err != nil || len(tables) == 0 || !strings.HasPrefix(tables[0].File, home) {
			t.Errorf("cluster %v: %+v, %v", cluster, tables, err)
		}
		back := formattest.Finish(t, dst)
		checkWriter(t, back, cluster, "")
		formattest.CheckEqual(
			t, formattest.Sum(t, formattest.Records(t, back, kvrocks.DefaultNamespace, &format.Env{Now: goldenNow})),
			formattest.Sum(t, read()), false)
	}
}

// TestVersionsOfThePast: a server makes versions from its clock, and takes rows of higher versions for a later
// collection. No written version is in the future.
func TestVersionsOfThePast(t *testing.T) {
	m := formattest.NewMemory(t, kvrocks.New())
	dst := m.Create(t, format.CreateOptions{DBs: []string{kvrocks.DefaultNamespace}, TempDir: t.TempDir(), Now: fixtures.Clock})
	o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.Of(record.Hash, record.Set)}
	// the versions of each shard are below those of the one before
	fillShard(t, dst, 3, kvrocks.DefaultNamespace, 0, fixtures.Records(1, 20, o))
	newest, seen := codec.Version(fixtures.Clock.UnixMicro())<<codec.VersionCounter, 0
	for _, ks := range formattest.Finish(t, dst).Keyspaces() {
		if ks.Name != "metadata" {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, value, err := it.Next(); err == nil; _, value, err = it.Next() {
			m, err := codec.DecodeMeta(value)
			seen++
			if err != nil || m.Version > newest || m.Version == 0 {
				t.Errorf("version %d, it is %d, %v", m.Version, newest, err)
			}
		}
		it.Close()
	}
	if seen == 0 {
		t.Error("no rows")
	}
}

// checklist checks the rules of the server's own writers on the bytes of all rows.
type checklist struct {
	t        *testing.T
	cluster  bool
	old      bool // of a server before 2.4
	before10 bool // of one before 2.10: it has no HyperLogLogs, and other rows of consumer groups
	metas    map[string]codec.Meta
	versions map[codec.Version]string
	rows     map[string]uint64 // below metadata, by key; those of groups and zset_score are not counted
	first    map[string]uint64 // indexes of lists
	last     map[string]uint64
	members  map[string]bool // key, member, score
	scores   map[string]uint64
	ids      map[string][]codec.StreamID
	groups   map[string]codec.Group // key, group
	found    map[string]codec.Group // consumers and pending entries that are there
	counts   map[string]uint64      // groups of a key
	fields   map[string]versioned.FieldSums
}

// checkWriter checks every row against the rules of the server's own writers, from the bytes alone, and returns the
// number of keys of each kind.
func checkWriter(t *testing.T, src format.Source, cluster bool, server string) map[codec.Kind]int {
	t.Helper()
	c := &checklist{t: t, cluster: cluster, old: server == "kvrocks2.3", before10: server == "kvrocks2.9" || server == "kvrocks2.3",
		metas: map[string]codec.Meta{}, versions: map[codec.Version]string{},
		rows: map[string]uint64{}, first: map[string]uint64{}, last: map[string]uint64{}, members: map[string]bool{},
		scores: map[string]uint64{}, ids: map[string][]codec.StreamID{}, groups: map[string]codec.Group{},
		found: map[string]codec.Group{}, counts: map[string]uint64{}, fields: map[string]versioned.FieldSums{}}
	var families []string
	for _, ks := range src.Keyspaces() { // in this order: metadata, default, zset_score, stream
		families = append(families, ks.Name)
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, value, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch ks.Name {
			case "metadata":
				c.meta(key, value)
			case "default", "stream", "zset_score":
				c.below(ks.Name, key, value)
			default:
				t.Errorf("a row in %s", ks.Name)
			}
		}
		it.Close()
	}
	slices.Sort(families)
	if !slices.Equal(families, []string{"default", "metadata", "propagate", "pubsub", "stream", "zset_score"}) {
		t.Errorf("families %q: no server may miss one, none before 2.8 knows more", families)
	}
	return c.settle()
}

// meta: the server's form, the slot of the key, a unique version that is not 0. No row is written that compaction would
// drop: only kinds that may be empty have size 0.
func (c *checklist) meta(key, value []byte) {
	c.t.Helper()
	k, err := codec.DecodeMetaKey(key, c.cluster)
	m, merr := codec.DecodeMeta(value)
	if err != nil || merr != nil || c.cluster && k.Slot != codec.Slot(k.Key) || m.Wide == c.old || value[0]&0x70 != 0 ||
		!m.Alive() {
		c.t.Fatalf("%q: %+v, %v, %v", key, m, err, merr)
	}
	if c.before10 && m.Kind >= codec.KindHyperLogLog || string(k.Namespace) != kvrocks.DefaultNamespace {
		c.t.Errorf("%q is a %s", key, m.Kind)
	}
	m.Extras = bytes.Clone(m.Extras)
	c.metas[string(k.Key)] = m
	if m.Kind == codec.KindString || m.Kind == codec.KindJSON {
		return
	}
	if other, twice := c.versions[m.Version]; twice || m.Version == 0 {
		c.t.Errorf("%q has the version %d of %q", k.Key, m.Version, other)
	}
	c.versions[m.Version] = string(k.Key)
}

// below: metadata of the same version, whole segments, contiguous indexes, a row by score for each member.
func (c *checklist) below(cf string, raw, value []byte) {
	c.t.Helper()
	k, err := codec.DecodeSubKey(raw, c.cluster)
	if err != nil || c.cluster && k.Slot != codec.Slot(k.Key) {
		c.t.Fatalf("%s %q: %v", cf, raw, err)
	}
	key := string(k.Key)
	m := c.metas[key]
	if m.Version != k.Version {
		c.t.Errorf("%s %q is of version %d, its key of %d", cf, raw, k.Version, m.Version)
	}
	switch {
	case cf == "zset_score":
		c.scores[key]++
		if !c.members[key+"\x00"+string(k.Sub[8:])+"\x00"+string(k.Sub[:8])] || len(value) > 0 {
			c.t.Errorf("row by score %q without its member", raw)
		}
		return
	case cf == "stream" && !codec.IsEntry(k.Sub):
		c.group(key, k.Sub, value)
		return
	case cf == "stream":
		if err := codec.CheckPairs(value); err != nil || bytes.HasPrefix(k.Sub, []byte("\xff\xff\xff\xff\xff\xff\xff\xff")) {
			c.t.Errorf("entry %x of %q: %v", k.Sub, key, err)
		}
		c.ids[key] = append(c.ids[key], codec.StreamID(k.Sub))
	case m.Kind == codec.KindHash && len(m.Extras) > 0:
		expiry, _, err := codec.DecodeField(value)
		s := c.fields[key]
		s.Add(int64(expiry))
		if err != nil {
			c.t.Errorf("field %q of %q: %v", k.Sub, key, err)
		}
		c.fields[key] = s
	case m.Kind == codec.KindZSet:
		c.members[key+"\x00"+string(k.Sub)+"\x00"+string(value)] = true
	case m.Kind == codec.KindList:
		index := binary.BigEndian.Uint64(k.Sub)
		if c.rows[key] == 0 {
			c.first[key], c.last[key] = index, index
		} else if c.last[key]++; c.last[key] != index {
			c.t.Errorf("list %q: index %d after %d", key, index, c.last[key]-1)
		}
	case m.Kind == codec.KindBitmap:
		at, err := codec.DecodeSegment(k.Sub)
		if err != nil || len(value) != 1024 || at >= m.Size || bytes.Count(value, []byte{0}) == len(value) {
			c.t.Errorf("a segment of %d bytes at %s of %q, which has %d: %v", len(value), k.Sub, key, m.Size, err)
		}
	case m.Kind == codec.KindHyperLogLog:
		if _, err := codec.DecodeHLLSegment(k.Sub); err != nil || len(value) != 768 {
			c.t.Errorf("a segment of %d bytes at %s of %q: %v", len(value), k.Sub, key, err)
		}
	case m.Kind == codec.KindSet && len(value) > 0, m.Kind == codec.KindSortedInt && (len(value) > 0 || len(k.Sub) != 8):
		c.t.Errorf("row %q of a %s has the value %q", raw, m.Kind, value)
	}
	c.rows[key]++
}

// group records a row of a consumer group.
func (c *checklist) group(key string, sub, value []byte) {
	c.t.Helper()
	g, err := codec.DecodeGroupKey(sub)
	if err != nil || g.Old != c.before10 {
		c.t.Fatalf("group row %x of %q: %v", sub, key, err)
	}
	at := key + "\x00" + string(g.Group)
	n := c.found[at]
	switch g.Kind {
	case codec.KindGroup:
		c.counts[key]++
		c.groups[at], err = codec.DecodeGroup(value)
	case codec.KindConsumer:
		n.Consumers++
	case codec.KindPending:
		n.Pending++
	}
	c.found[at] = n
	if err != nil {
		c.t.Error(err)
	}
}

// settle: exactly the rows counted by metadata exist.
func (c *checklist) settle() map[codec.Kind]int {
	c.t.Helper()
	kinds := map[codec.Kind]int{}
	for key, m := range c.metas {
		kinds[m.Kind]++
		switch m.Kind {
		case codec.KindHash, codec.KindList, codec.KindSet, codec.KindZSet, codec.KindSortedInt, codec.KindStream:
			if m.Size != c.rows[key] || m.Kind == codec.KindZSet && m.Size != c.scores[key] {
				c.t.Errorf("%q (%s) has size %d, %d rows and %d by score", key, m.Kind, m.Size, c.rows[key], c.scores[key])
			}
		}
		switch m.Kind {
		case codec.KindHash: // the form with expiries only where a field has one
			f := c.fields[key]
			s, err := codec.DecodeHashState(m.Extras)
			want := (codec.HashState{Persist: uint64(f.Persist), Lower: codec.UnixMillis(f.Lower),
				Upper: codec.UnixMillis(f.Upper)})
			if len(m.Extras) > 0 && (err != nil || s != want || f.Expiring == 0) {
				c.t.Errorf("hash %q: %+v, %v, want %+v", key, s, err, want)
			}
		case codec.KindList:
			if e, err := codec.DecodeListEnds(m.Extras); err != nil || e.Head != c.first[key] || e.Tail != c.last[key]+1 {
				c.t.Errorf("list %q: %+v, %v, rows from %d to %d", key, e, err, c.first[key], c.last[key])
			}
		case codec.KindStream:
			c.stream(key, m.Extras)
		}
	}
	for at, g := range c.groups {
		if n := c.found[at]; g.Consumers != n.Consumers || g.Pending != n.Pending {
			c.t.Errorf("group %q counts %d consumers and %d pending entries, found %d and %d", at, g.Consumers, g.Pending,
				n.Consumers, n.Pending)
		}
	}
	return kinds
}

// stream: ids and counts match the rows.
func (c *checklist) stream(key string, extras []byte) {
	c.t.Helper()
	s, err := codec.DecodeStreamState(extras)
	ids := c.ids[key]
	if err != nil || s.Old != c.old || s.Groups != c.counts[key] || s.Added < uint64(len(ids)) {
		c.t.Errorf("stream %q: %+v, %v, %d groups, %d entries", key, s, err, c.counts[key], len(ids))
	}
	if len(ids) == 0 {
		return
	}
	last := ids[len(ids)-1]
	if s.First != ids[0] || s.RecordedFirst != ids[0] || s.Last != last || bytes.Compare(s.LastGenerated[:], last[:]) < 0 {
		c.t.Errorf("stream %q: %+v, entries from %x to %x", key, s, ids[0], last)
	}
}

// TestChecklist: rows in the dialect of each server follow the rules of its writers, in and out of a cluster.
func TestChecklist(t *testing.T) {
	for _, server := range []string{"", "kvrocks2.17", "kvrocks2.9", "kvrocks2.3", "cluster"} {
		f := kvrocks.New().(format.Served).For(strings.TrimPrefix(server, "cluster"))
		o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: f.Limits(), Types: record.RedisTypes, Expired: true}
		dst := formattest.NewMemory(t, f).Create(t,
			format.CreateOptions{TempDir: t.TempDir(), Now: fixtures.Clock, DBs: []string{o.DB},
				Cluster: server == "cluster"})
		fillShard(t, dst, 0, o.DB, 0, fixtures.Records(3, 300, o))
		kinds := checkWriter(t, formattest.Finish(t, dst), server == "cluster", strings.TrimPrefix(server, "cluster"))
		for _, k := range []codec.Kind{codec.KindString, codec.KindHash, codec.KindList, codec.KindSet, codec.KindZSet,
			codec.KindStream} {
			if kinds[k] < 10 {
				t.Errorf("%s: %d of %s", server, kinds[k], k)
			}
		}
	}
}

// TestLosses: losses are reported, and values that a target holds in another form are changed before they are hashed.
func TestLosses(t *testing.T) {
	old := formattest.NewMemory(t, kvrocks.New().(format.Served).For("kvrocks2.3")).Create(t, format.CreateOptions{})
	mid := formattest.NewMemory(t, kvrocks.New().(format.Served).For("kvrocks2.9")).Create(t, format.CreateOptions{})
	now := formattest.NewMemory(t, kvrocks.New()).Create(t, format.CreateOptions{})
	for _, c := range []struct {
		dst  format.Target
		h    record.Header
		want string
	}{
		{now, record.Header{Type: record.Hash, ExpireMS: 1, Len: 1 << 33}, ""},
		{mid, record.Header{Type: record.Hash, ExpireMS: 1 << 50, Len: 1 << 33}, ""},
		{now, record.Header{Type: record.Hash, ExpireMS: -5000}, "expiry-ms? ms=1"},
		{mid, record.Header{Type: record.String, ExpireMS: -1 << 63}, "expiry-ms? ms=1"},
		{old, record.Header{Type: record.Hash, ExpireMS: -500}, "expiry-ms? ms=1000"},
		{old, record.Header{Type: record.Hash, ExpireMS: 1}, "expiry-ms ms=1000"},
		{old, record.Header{Type: record.Hash, ExpireMS: 1699999999001}, "expiry-ms ms=1700000000000"},
		{old, record.Header{Type: record.Hash, ExpireMS: 1700000000000}, ""},
		{old, record.Header{Type: record.Hash, ExpireMS: (1<<32 - 1) * 1000}, ""},
		{old, record.Header{Type: record.Hash, ExpireMS: (1<<32-1)*1000 + 1}, "expiry-2106 ms=4294967295000"},
		{old, record.Header{Type: record.Set, Len: 1<<32 - 1}, ""},
		{old, record.Header{Type: record.Set, Len: 1 << 32}, "too-many-elements!"},
		{old, record.Header{Type: record.String, Len: 1 << 32}, ""},
	} {
		if got := formattest.Losses(t, c.dst, c.h); got != c.want {
			t.Errorf("%+v: %q, want %q", c.h, got, c.want)
		}
	}
	pending := func(consumer []byte) record.Element {
		return record.Element{Kind: record.Pending, Name: []byte("g"),
			Value: record.AppendPending(nil, &record.PendingEntry{ID: make([]byte, 16), Consumer: consumer, Count: 1})}
	}
	sparse := "HYLL\x01\x00\x00\x00" + strings.Repeat("\x00", 8)
	for _, c := range []struct {
		dst   format.Target
		typ   record.Type
		e     record.Element
		want  string
		kept  int
		dense bool
	}{
		{now, record.String, record.Element{Value: []byte(sparse + "\x7f\xff")}, "hyperloglog", 1, true},
		{now, record.String, record.Element{Value: []byte(sparse + "\x7f\xff\x00")}, "hyperloglog", 1, false},
		{now, record.String, record.Element{Value: make([]byte, hll.RawSize)}, "hyperloglog", 1, false},
		{old, record.String, record.Element{Value: []byte(sparse + "\x7f\xff")}, "hyperloglog", 1, false},
		{now, record.String, record.Element{Value: []byte("just a string of some length")}, "", 1, false},
		{now, record.Stream, record.Element{Name: bytes.Repeat([]byte{0xff}, 16)}, "stream-id", 0, false},
		{old, record.Stream, record.Element{Name: append(bytes.Repeat([]byte{0xff}, 8), "seq-seq-"...)}, "stream-id", 0, false},
		{now, record.Stream, record.Element{Name: append([]byte{0xfe}, bytes.Repeat([]byte{0xff}, 15)...)}, "", 1, false},
		{now, record.Stream, record.Element{Kind: record.Group}, "", 1, false},
		{mid, record.Stream, record.Element{Kind: record.Group}, "stream-groups", 0, false},
		{now, record.Stream, pending(nil), "stream-groups", 0, false},
		{mid, record.Stream, pending(nil), "stream-groups", 0, false},
		{now, record.Stream, pending([]byte("c")), "", 1, false},
		{mid, record.Stream, record.Element{Kind: record.Consumer}, "", 0, false},
		{mid, record.Stream, record.Element{Kind: record.Group, Name: []byte("g")}, "", 1, false},
		{now, record.Other, record.Element{Name: []byte("MBbloom--"), Value: []byte("x")}, "module", 0, false},
		{now, record.Other, record.Element{Name: []byte("kvrocks:TDIS-TYPE"), Value: []byte("x")}, "", 1, false},
		{mid, record.Other, record.Element{Name: []byte("kvrocks:TDIS-TYPE"), Value: []byte("x")}, "module", 0, false},
		{mid, record.Other, record.Element{Name: []byte("kvrocks:MBbloom--"), Value: []byte("x")}, "", 1, false},
		{old, record.Other, record.Element{Name: []byte("kvrocks:MBbloom--"), Value: []byte("x")}, "module", 0, false},
		{old, record.Other, record.Element{Name: []byte("kvrocks:bitmap"), Value: []byte("x")}, "", 1, false},
	} {
		got, drops := "", false
		kept := c.dst.ElementLosses(&record.Header{Type: c.typ}, []record.Element{c.e},
			func(l record.Loss) { got, drops = got+l.Kind, l.Drops })
		if got != c.want || got != "" && drops != (c.kept == 0) || len(kept) != c.kept ||
			c.typ == record.String && hll.IsStale(kept[0].Value) != c.dense {
			t.Errorf("%s %.20q: %q, want %q; %d kept", c.typ, c.e.Value, got, c.want, len(kept))
		}
	}
}

func TestNamespaces(t *testing.T) {
	for _, c := range []struct {
		db      string
		cluster bool
		ok      bool
	}{{"users", false, true}, {"", false, false}, {strings.Repeat("n", 256), false, false},
		{strings.Repeat("n", 255), false, true},
		{"a\x7f", false, false}, {"users", true, false}, {kvrocks.DefaultNamespace, true, true}} {
		m := formattest.NewMemory(t, kvrocks.New())
		dst, err := m.Format.Create(context.Background(), m.Dir,
			&format.CreateOptions{Create: m.FS.Create, DBs: []string{c.db}, Cluster: c.cluster})
		if (err == nil) != c.ok {
			t.Errorf("namespace %.10q: %v", c.db, err)
		}
		if err == nil {
			if err := dst.Adopt(0, c.db, []store.Table{{File: "db/000001.sst"}}); (err != nil) != c.cluster {
				t.Errorf("adopt: %v", err)
			}
			if err := dst.Adopt(0, c.db, []store.Table{{File: "elsewhere"}}); err == nil {
				t.Error("a table of somewhere else is taken")
			}
			dst.Abort()
		}
	}
}

// TestLimits: servers before 2.4 count elements and seconds of expiry in 32 bits, and have no consumer groups.
func TestLimits(t *testing.T) {
	const beside = " Beside=[backup backup.tmp backup_for_sync checkpoint sync_checkpoint db.tmp]"
	const opaque = "[kvrocks:bitmap kvrocks:MBbloom-- kvrocks:ReJSON-RL kvrocks:TDIS-TYPE kvrocks:timeseries kvrocks:MBbloomCF]"
	const all = "Types=string,hash,list,set,zset,stream,other EmptyKey"
	formattest.Limits(t, kvrocks.New(), all+" FirstMS=1 MaxScore=+Inf StreamGroups FieldsRead Opaque="+opaque+
		" Unheld=[kvrocks:MBbloomCF] DefaultDB=__namespace Cluster SST rocksdb:rw"+beside)
	formattest.Limits(t, kvrocks.New().(format.Served).For("kvrocks2.15"),
		all+" FirstMS=1 MaxScore=+Inf StreamGroups FieldsRead Opaque="+opaque+
			" Unheld=[kvrocks:MBbloomCF] DefaultDB=__namespace DBPrefix=db Cluster SST rocksdb:rw"+beside)
	formattest.Limits(t, kvrocks.New().(format.Served).For("kvrocks2.17"),
		all+" FirstMS=1 MaxScore=+Inf FieldExpiry StreamGroups FieldsRead Opaque="+opaque+
			" DefaultDB=__namespace DBPrefix=db Cluster SST rocksdb:rw"+beside)
	formattest.Limits(t, kvrocks.New().(format.Served).For("kvrocks2.9"),
		all+" FirstMS=1 MaxScore=+Inf StreamGroups FieldsRead NamedGroups Opaque="+opaque+
			" Unheld=[kvrocks:TDIS-TYPE kvrocks:timeseries kvrocks:MBbloomCF] DefaultDB=__namespace Cluster rocksdb:rw"+beside)
	formattest.Limits(t, kvrocks.New().(format.Served).For("kvrocks2.3"),
		all[:len(all)-len(" EmptyKey")]+" Seconds MaxExpireMS=4294967295000 EmptyKey FirstMS=1000 MaxScore=+Inf MaxElements=4294967295 FieldsRead NamedGroups "+
			"Opaque="+opaque+" Unheld=[kvrocks:MBbloom-- kvrocks:ReJSON-RL kvrocks:TDIS-TYPE kvrocks:timeseries kvrocks:MBbloomCF] DefaultDB=__namespace Cluster rocksdb:rw"+
			beside)
}

func TestDetect(t *testing.T) {
	evidence := func(path, kind, comparer string, names ...string) *format.Evidence {
		s := format.StoreEvidence{Path: path, Kind: kind}
		for _, n := range names {
			s.Keyspaces = append(s.Keyspaces, format.KeyspaceEvidence{Name: n, Comparer: comparer})
		}
		return &format.Evidence{Stores: []format.StoreEvidence{s}}
	}
	several := evidence("x/y", "rocksdb", store.Bytewise.Name, "default", "metadata", "stream")
	several.Stores = append(several.Stores, evidence("db", "rocksdb", "", "default", "metadata", "stream").Stores...)
	for _, c := range []struct {
		ev    *format.Evidence
		score int
	}{
		{evidence("db", "rocksdb", store.Bytewise.Name, "default", "metadata", "zset_score", "pubsub", "propagate", "stream"), 99},
		{evidence(".", "rocksdb", store.Bytewise.Name, "default", "metadata", "stream"), 88},
		{several, 89},
		{evidence("db", "rocksdb", store.Bytewise.Name, "default", "metadata", "x", "y"), 0},
		{evidence("db", "rocksdb", store.Bytewise.Name, "default"), 0},
		{evidence("db", "leveldb", store.Bytewise.Name, "default", "metadata", "stream"), 0},
		{evidence("db", "rocksdb", "another", "default", "metadata", "stream"), 0},
		{evidence("x/y", "rocksdb", store.Bytewise.Name, "default", "metadata", "stream"), 0},
	} {
		if v := kvrocks.New().Detect(c.ev); v.Score != c.score || (c.score > 0) != (len(v.Why) > 0) {
			t.Errorf("%+v: %+v", c.ev, v)
		}
	}
	if f := kvrocks.New().(format.Served); len(f.Servers()) != 4 || f.For("kvrocks2.9").(format.Served).Server() != "kvrocks2.9" {
		t.Error("servers")
	}
}

// oneField writes a hash.
func oneField(w *formattest.OneByOne, key string) error {
	return errors.Join(w.Begin(&record.Header{Type: record.Hash, Key: []byte(key)}),
		w.Write([]record.Element{{Name: []byte("f")}}), w.End())
}

// TestNoElements: a record without elements is not written, and another type can use its name.
func TestNoElements(t *testing.T) {
	for _, server := range []string{"", "kvrocks2.3", "kvrocks2.17"} {
		dst := formattest.NewMemory(t, kvrocks.New().(format.Served).For(server)).Create(t,
			format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()})
		w, err := formattest.One(dst.Shard(0, "0", record.AllTypes, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			for _, typ := range []record.Type{record.String, record.List, record.Set} {
				if err := errors.Join(w.Begin(&record.Header{Type: typ, Key: []byte(key)}), w.End()); err != nil {
					t.Errorf("%s: %s %s: %v", server, typ, key, err)
				}
			}
			if err := oneField(w, key); err != nil {
				t.Errorf("%s: %v", server, err)
			}
			if err := errors.Join(w.Begin(&record.Header{Type: record.ZSet, Key: []byte(key + key)}), w.End()); err != nil {
				t.Errorf("%s: %v", server, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := string(formattest.Lines(t, formattest.Records(t, formattest.Finish(t, dst), "0", &format.Env{})))
		if strings.Count(got, `"type":"hash"`) != 2 || strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %s", server, got)
		}
	}
}

// TestMisuse: a writer refuses what it cannot write.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(w *formattest.OneByOne) error{
		"order": func(w *formattest.OneByOne) error {
			if err := oneField(w, "b"); err != nil {
				return fmt.Errorf("too early: %w", err)
			}
			return w.Begin(&record.Header{Type: record.Hash, Key: []byte("a")})
		},
		"twice": func(w *formattest.OneByOne) error {
			if err := oneField(w, "a"); err != nil {
				return fmt.Errorf("too early: %w", err)
			}
			return w.Begin(&record.Header{Type: record.Set, Key: []byte("a")})
		},
		"two values": func(w *formattest.OneByOne) error {
			_ = w.Begin(&record.Header{Type: record.String, Key: []byte("a")})
			return w.Write([]record.Element{{Value: []byte("x")}, {Value: []byte("y")}})
		},
		"id": func(w *formattest.OneByOne) error {
			_ = w.Begin(&record.Header{Type: record.Stream, Key: []byte("a"), ByName: true})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"sortedint": func(w *formattest.OneByOne) error {
			_ = w.Begin(&record.Header{Type: record.Set, Key: []byte("a"), Native: "sortedint"})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"module": func(w *formattest.OneByOne) error {
			_ = w.Begin(&record.Header{Type: record.Other, Key: []byte("a")})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"part": func(w *formattest.OneByOne) error {
			_ = w.Begin(&record.Header{Type: record.Other, Key: []byte("a")})
			return w.Write([]record.Element{{Name: []byte("kvrocks:MBbloom--"), Value: []byte{1, 9}}})
		},
	} {
		dst := formattest.NewMemory(t, kvrocks.New()).Create(t, format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()})
		w, err := formattest.One(dst.Shard(0, "0", record.AllTypes, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := do(w); err == nil || !strings.Contains(err.Error(), "kvrocks namespace") {
			t.Errorf("%s: %v", name, err)
		}
		w.Abort()
	}
}

// TestLoadFolders: hard links to the tables of each column family are in a folder that is loaded in its turn.
func TestLoadFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.RedisTypes}
	dst := formattest.Create(t, kvrocks.New(), dir, &format.CreateOptions{Create: build.Create, DBs: []string{o.DB}, SST: true,
		TempDir: t.TempDir(), Now: fixtures.Clock, Reopen: &format.OpenOptions{Store: rocks.Open}})
	fillShard(t, dst, 3, o.DB, 0, fixtures.Records(7, 50, o))
	formattest.Finish(t, dst)
	linked := 0
	for i, family := range []string{"default", "zset_score", "stream", "metadata"} {
		names, err := filepath.Glob(filepath.Join(dir, "sst", fmt.Sprintf("%d-%s", i+1, family), "*.sst"))
		if err != nil || len(names) == 0 {
			t.Errorf("%s: %q, %v", family, names, err)
		}
		for _, name := range names {
			a, err := os.Stat(name)
			b, err2 := os.Stat(filepath.Join(dir, "db", filepath.Base(name)))
			linked++
			if err != nil || err2 != nil || !os.SameFile(a, b) {
				t.Errorf("%s is another file than that of the database: %v, %v", name, err, err2)
			}
		}
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "sst", "*", "*")); len(all) != linked {
		t.Errorf("%q are loaded, of which %d are known", all, linked)
	}
}

// TestLoadPath: a path with the name of a column family is refused, since the server would misassign the tables.
func TestLoadPath(t *testing.T) {
	for path, refused := range map[string]bool{"new": false, "my-default": true, "streams/new": true, "metadata-copy": true} {
		dir := filepath.Join(t.TempDir(), path)
		dst, err := kvrocks.New().Create(context.Background(), dir, &format.CreateOptions{Create: build.Create, SST: true,
			DBs: []string{kvrocks.DefaultNamespace}, TempDir: t.TempDir(), Now: fixtures.Clock})
		if refused != (err != nil && strings.Contains(err.Error(), "SST LOAD")) {
			t.Errorf("%s: %v", path, err)
		}
		if dst != nil {
			dst.Abort()
		}
	}
}
