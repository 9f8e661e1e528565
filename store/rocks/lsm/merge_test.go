package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
)

// model is the expected contents of a set of entries and range tombstones.
type model struct {
	rows   []testsst.Row
	tally  record.Tally
	cmp    func(a, b []byte) int
	tombs  []lsm.Tombstone // unclipped
	merger *store.Merger
}

func (m *model) covered(e *testsst.Entry) bool {
	for _, d := range m.tombs {
		if d.Seq > e.Seq && m.cmp([]byte(e.Key), d.Start) >= 0 && m.cmp([]byte(e.Key), d.End) < 0 {
			return true
		}
	}
	return false
}

// read processes entries in internal key order, slowly and plainly.
func (m *model) read(entries []testsst.Entry) {
	testsst.SortEntries(m.cmp, entries)
	for i := 0; i < len(entries); {
		j := i
		for j < len(entries) && m.cmp([]byte(entries[i].Key), []byte(entries[j].Key)) == 0 {
			j++
		}
		m.key(entries[i:j])
		i = j
	}
	m.tally.Entries += int64(len(m.tombs))
	m.tally.Tombstones += int64(len(m.tombs))
}

// key reads all versions of one key, newest first.
func (m *model) key(versions []testsst.Entry) {
	m.tally.Entries += int64(len(versions))
	var ops [][]byte
	var under []byte
	shown, settled := int64(0), false
	for i := range versions {
		e := &versions[i]
		isDel := e.Kind == base.KindDelete || e.Kind == base.KindSingleDelete
		switch covered := m.covered(e); {
		case isDel:
			m.tally.Tombstones++
			settled = true
		case covered:
			m.tally.RangeDeleted++
			settled = true
		case settled:
			m.tally.Superseded++
		case e.Kind == base.KindMerge:
			ops = append(ops, []byte(e.Value))
			shown++
		default:
			under = []byte(e.Value)
			shown++
			settled = true
		}
	}
	if shown == 0 {
		return
	}
	value, keep := under, true
	if len(ops) > 0 {
		slices.Reverse(ops)
		value, keep, _ = m.merger.Fold(nil, []byte(versions[0].Key), under, ops)
	}
	if keep {
		m.rows = append(m.rows, testsst.Row{Key: []byte(versions[0].Key), Value: value})
		m.tally.Visible++
		shown--
	}
	m.tally.Folded += shown
}

// randomDB writes a random database of several runs into d and returns its entries and tombstones.
func randomDB(r *rand.Rand, d *testsst.DB, cmp *store.Comparer, tombs bool) (entries []testsst.Entry, ts []lsm.Tombstone) {
	seq, keys := uint64(1), 10+r.Intn(300)
	key := func() string {
		k := fmt.Sprintf("k%0*d", 1+r.Intn(4), r.Intn(keys))
		return strings.Repeat("p", r.Intn(2)*r.Intn(12)) + k
	}
	long := []int{0, 0, 0, 0, 0, 0, 125, 200} // lengths of one and of two bytes
	if r.Intn(10) == 0 {
		long = append(long, 1<<14)
	}
	runs := 1 + r.Intn(14)
	for run := range runs {
		seen := map[string]bool{}
		var part []testsst.Entry
		spec := testsst.Spec{Comparator: cmp.Name, BlockSize: 1 + r.Intn(400), Restarts: 1 + r.Intn(6), Codec: byte(r.Intn(2)),
			IndexType: []uint32{testsst.BinaryIndex, testsst.TwoLevelIndex}[r.Intn(2)]}
		for range 1 + r.Intn(200) {
			e := testsst.NewEntry(key(), seq, []byte{base.KindPut, base.KindPut, base.KindPut, base.KindDelete,
				base.KindSingleDelete, base.KindMerge}[r.Intn(6)], fmt.Sprint("v", seq, strings.Repeat("w", long[r.Intn(len(long))])))
			if e.Kind == base.KindDelete || e.Kind == base.KindSingleDelete {
				e.Value = ""
			}
			seq++
			if run == 0 && seen[e.Key] {
				continue
			}
			seen[e.Key] = true
			part = append(part, e)
			if tombs && r.Intn(30) == 0 {
				a, b := key(), key()
				if cmp.Compare([]byte(a), []byte(b)) > 0 {
					a, b = b, a
				}
				spec.Tombstones = append(spec.Tombstones, testsst.NewEntry(a, seq, base.KindRangeDelete, b))
				ts = append(ts, lsm.Tombstone{Start: []byte(a), End: []byte(b), Seq: seq})
				seq++
			}
		}
		entries = append(entries, part...)
		if run == runs-1 && r.Intn(2) == 0 {
			d.Log(20, walOf(r, append(part, spec.Tombstones...))...)
			continue
		}
		if run == 0 { // the oldest: a deep level of several tables
			testsst.SortEntries(cmp.Compare, part)
			for len(part) > 0 {
				n := 1 + r.Intn(len(part))
				if n == len(part) {
					d.Table(0, 3, spec, part...)
				} else {
					s := spec
					s.Tombstones = nil
					d.Table(0, 3, s, part[:n]...)
				}
				part = part[n:]
			}
			continue
		}
		d.Table(0, 0, spec, part...)
	}
	return entries, ts
}

// walOf makes one write batch per entry.
func walOf(r *rand.Rand, entries []testsst.Entry) (records [][]byte) {
	for _, e := range entries {
		parts := []string{e.Key}
		if e.Kind != base.KindDelete && e.Kind != base.KindSingleDelete {
			parts = append(parts, e.Value)
		}
		if r.Intn(3) == 0 {
			records = append(records, testsst.Batch(e.Seq, testsst.Op(base.KindLogData, "note"), testsst.Op(e.Kind, parts...)))
			continue
		}
		records = append(records, testsst.Batch(e.Seq, testsst.Op(e.Kind, parts...)))
	}
	return records
}

// orderedDB makes a random database, in one of two orders.
func orderedDB(t *testing.T, r *rand.Rand,
	seed int64) (d *testsst.DB, order *store.Comparer, entries []testsst.Entry, tombs []lsm.Tombstone) {
	order = &store.Bytewise
	if seed%3 == 2 {
		order = &testsst.Backwards
	}
	d = testsst.NewDB(t)
	if order != &store.Bytewise {
		d.Edits[0] = slices.Concat(testsst.EditComparator(order.Name), d.Edits[0][2+len(testsst.BytewiseName):])
	}
	entries, tombs = randomDB(r, d, order, seed%2 == 1)
	return d, order, entries, tombs
}

// TestMergeModel reads random databases and compares rows and counts with the model.
func TestMergeModel(t *testing.T) {
	for seed := range int64(150 / testsst.SweepStep(2)) {
		r := rand.New(rand.NewSource(seed))
		d, order, entries, tombs := orderedDB(t, r, seed)
		m := &model{cmp: order.Compare, tombs: tombs, merger: testsst.JoinMerger}
		m.read(entries)
		lsm.WaitSmall(t, r.Intn(300), r.Intn(30))
		o := store.Options{Merger: testsst.JoinMerger, Memory: []int64{0, 4096}[seed%2],
			Hot: &store.Hot{Max: []int64{1 << 20, 3000}[seed%4/2]}}
		ks := openTest(t, d.Finish(), o).Keyspaces()[0]
		checkModel(t, seed, ks, m, r)
		if n := checkGets(t, ks, m, entries); len(tombs) == 0 && order.IsBytewise() && seed%4 < 2 && n < len(m.rows)/4 {
			t.Errorf("%d rows by single lookups, of %d", n, len(m.rows))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestBatchModel reads one sorted run of puts in batches: with blocks of all sizes, keys that share almost all bytes or
// none, lengths of one and of several bytes, and sequence numbers of ingested files.
func TestBatchModel(t *testing.T) {
	for seed := range int64(60) {
		r := rand.New(rand.NewSource(seed))
		d := testsst.NewDB(t)
		var entries []testsst.Entry
		for i := range 1 + r.Intn(400) {
			kind := byte(base.KindPut)
			if r.Intn(40) == 0 {
				kind = base.KindMerge
			}
			key := strings.Repeat("long", r.Intn(2)*r.Intn(60)) + fmt.Sprintf("%0*d", 1+r.Intn(9), r.Intn(5000))
			entries = append(entries, testsst.NewEntry(key, uint64(i+1), kind, strings.Repeat("v", r.Intn(2)*r.Intn(300))))
		}
		testsst.SortEntries(bytes.Compare, entries)
		d.Table(0, 6, testsst.Spec{BlockSize: 1 + r.Intn(9000), Restarts: 1 + r.Intn(40), Codec: byte(r.Intn(2))}, entries...)
		m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger}
		m.read(entries)
		lsm.WaitSmall(t, r.Intn(9000), r.Intn(300))
		checkModel(t, seed, openTest(t, d.Finish(), store.Options{Merger: testsst.JoinMerger, Memory: 4096}).Keyspaces()[0], m, r)
	}
}

func checkModel(t *testing.T, seed int64, ks store.Keyspace, m *model, r *rand.Rand) {
	t.Helper()
	got, n := testsst.ReadRows(t, ks, nil, nil)
	if testsst.Show(got) != testsst.Show(m.rows) {
		t.Fatalf("seed %d: rows\n%s\nwant\n%s", seed, testsst.Show(got), testsst.Show(m.rows))
	}
	if n != m.tally {
		t.Fatalf("seed %d: tally %+v, want %+v", seed, n, m.tally)
	}
	// Spans that cover everything add up to the same.
	var cuts [][]byte
	for range r.Intn(8) {
		cuts = append(cuts, []byte(fmt.Sprintf("k%0*d", 1+r.Intn(4), r.Intn(300))))
	}
	slices.SortFunc(cuts, m.cmp)
	cuts = slices.Concat([][]byte{nil}, cuts, [][]byte{nil})
	var sum record.Tally
	var all []testsst.Row
	for i := 0; i+1 < len(cuts); i++ {
		part, pn := testsst.ReadRows(t, ks, cuts[i], cuts[i+1])
		all = append(all, part...)
		sum.Add(&pn)
	}
	if testsst.Show(all) != testsst.Show(m.rows) || sum != m.tally {
		t.Fatalf("seed %d: spans at %q: %d rows %+v, want %d rows %+v", seed, cuts, len(all), sum, len(m.rows), m.tally)
	}
	checkSeeks(t, ks, m, r)
	checkBatches(t, ks, m, r)
	checkEntries(t, ks, m)
	checkWatched(t, ks, m)
}

// checkGets looks up each key that has an entry, and one that has none, twice. It returns the number of rows that were found.
func checkGets(t *testing.T, ks store.Keyspace, m *model, entries []testsst.Entry) (n int) {
	t.Helper()
	rows := map[string]string{}
	for _, row := range m.rows {
		rows[string(row.Key)] = string(row.Value)
	}
	for _, key := range append(keysOf(entries), "", "k", "none", "\xff") {
		want, exists := rows[key]
		for range 2 {
			value, found, ok := ks.(store.Getter).Get([]byte(key))
			switch {
			case !ok:
			case found != exists || string(value) != want:
				t.Fatalf("key %q: %q, found %t; want %q, %t", key, value, found, want, exists)
			case found:
				n++
			}
		}
	}
	return n / 2
}

func keysOf(entries []testsst.Entry) (keys []string) {
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkWatched: the watch function receives each entry without a visible row, in order, except range tombstones,
// entries they hide, and operands.
func checkWatched(t *testing.T, ks store.Keyspace, m *model) {
	t.Helper()
	it, err := ks.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	told, last := int64(0), []byte(nil)
	it.(store.Watched).Watch(func(key []byte) {
		told++
		if last != nil && m.cmp(key, last) < 0 {
			t.Errorf("%q is told of after row %q", key, last)
		}
	})
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = append([]byte{}, key...)
	}
	least, most := m.tally.Superseded, m.tally.Superseded+m.tally.Tombstones-int64(len(m.tombs)) // tombstones may lie in a range
	if told < least || told > most || len(m.tombs) == 0 && told != most {
		t.Errorf("%d entries are told of, want %d to %d", told, least, most)
	}
}

// checkBatches alternates batches and single rows, over all rows and over spans, and compares them with the results of
// Next alone; the counts of all rows equal the model's.
func checkBatches(t *testing.T, ks store.Keyspace, m *model, r *rand.Rand) {
	t.Helper()
	if n := walkBatchesOf(t, ks, nil, nil, nil, r); n != m.tally {
		t.Fatalf("tally of batches %+v, want %+v", n, m.tally)
	}
	key := func() []byte {
		if len(m.rows) == 0 || r.Intn(4) == 0 {
			return nil
		}
		return append(bytes.Clone(m.rows[r.Intn(len(m.rows))].Key), "\x00"[:r.Intn(2)]...)
	}
	for range 4 {
		lo, hi := key(), key()
		if lo != nil && hi != nil && m.cmp(lo, hi) > 0 {
			lo, hi = hi, lo
		}
		walkBatchesOf(t, ks, lo, hi, key, r)
	}
}

// walkBatchesOf reads [lo, hi) twice: in batches and single rows, and by Next alone. Rows, places and counts are the
// same, also after seeks to the given keys.
func walkBatchesOf(t *testing.T, ks store.Keyspace, lo, hi []byte, key func() []byte, r *rand.Rand) (n record.Tally) {
	t.Helper()
	one, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	it, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	batch := make([]store.Row, 1+r.Intn(100))
	for err == nil {
		if key != nil && r.Intn(3) == 0 {
			if k := key(); k != nil && (it.SeekGE(k) != nil || one.SeekGE(k) != nil) {
				t.Fatalf("seek to %q", k)
			}
		}
		var got int
		batched := r.Intn(4) > 0
		place := func(int) record.Place { return it.Place() }
		if !batched {
			if batch[0].Key, batch[0].Value, err = it.Next(); err == nil {
				got = 1
			}
		} else {
			got, err = it.(store.Batcher).NextBatch(batch[:1+r.Intn(len(batch))])
			place = it.(store.Batcher).PlaceAt
		}
		if (got > 0) != (err == nil) {
			t.Fatalf("%d rows and %v", got, err)
		}
		here := got
		if w, ok := it.(store.Releaser); ok && batched && r.Intn(2) == 0 {
			here = w.Release(batch[:got])
			if r.Intn(2) == 0 {
				checkReload(t, w, batch[:got], here)
				here = got
			}
		}
		for i, b := range batch[:got] {
			k, v, err := one.Next()
			if i >= here && b.Value == nil {
				b.Value = v
			}
			if err != nil || !bytes.Equal(k, b.Key) || !bytes.Equal(v, b.Value) || place(i) != one.Place() {
				t.Fatalf("row %d of a batch of %d: %q = %q at %+v, want %q = %q at %+v, %v", i, got, b.Key, b.Value, place(i), k,
					v, one.Place(), err)
			}
		}
		if r.Intn(3) == 0 {
			it.Tally(&n)
		}
	}
	it.Tally(&n)
	if _, _, end := one.Next(); end != io.EOF || err != io.EOF {
		t.Fatalf("batches end with %v, rows with %v", err, end)
	}
	var want record.Tally
	one.Tally(&want)
	if n != want {
		t.Fatalf("tally of batches %+v, of rows %+v", n, want)
	}
	return n
}

// checkReload reads again the values freed from row here on.
func checkReload(t *testing.T, w store.Releaser, batch []store.Row, here int) {
	t.Helper()
	var before []string
	for _, b := range batch[:here] {
		before = append(before, string(b.Value))
	}
	if err := w.Reload(batch); err != nil {
		t.Fatal(err)
	}
	for i, v := range before {
		if string(batch[i].Value) != v {
			t.Fatalf("row %d of %d was %q and is %q when it is read again", i, len(batch), v, batch[i].Value)
		}
	}
}

// checkSeeks seeks forward at random, to rows and between them.
func checkSeeks(t *testing.T, ks store.Keyspace, m *model, r *rand.Rand) {
	t.Helper()
	it, err := ks.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for i := 0; i < len(m.rows); i++ {
		if r.Intn(3) == 0 {
			i += r.Intn(len(m.rows) - i)
			if err := it.SeekGE(m.rows[i].Key); err != nil {
				t.Fatal(err)
			}
		}
		k, v, err := it.Next()
		if err != nil || !bytes.Equal(k, m.rows[i].Key) || !bytes.Equal(v, m.rows[i].Value) {
			t.Fatalf("row %d after seeks: %q = %q, %v; want %q = %q", i, k, v, err, m.rows[i].Key, m.rows[i].Value)
		}
	}
	if _, _, err := it.Next(); err != io.EOF {
		t.Fatalf("after the last row: %v", err)
	}
	if err := it.SeekGE([]byte("zzz")); err != nil {
		t.Fatal(err)
	}
}

// checkEntries walks all entries and compares number, order and coverage with the model.
func checkEntries(t *testing.T, ks store.Keyspace, m *model) {
	t.Helper()
	it, err := ks.Entries(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	n, covered := int64(0), int64(0)
	var prev []byte
	for {
		e, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		if e.Kind == store.RangeDelete {
			continue
		}
		k := testsst.Entry{Key: string(e.Key), Seq: e.Seq}
		if e.Covered != m.covered(&k) {
			t.Fatalf("entry %q seq %d: covered %t", e.Key, e.Seq, e.Covered)
		}
		if e.Covered {
			covered++
		}
		if e.Place.File == "" || e.Place.Seq != e.Seq {
			t.Fatalf("entry %q: place %+v", e.Key, e.Place)
		}
		if prev != nil && m.cmp(prev, e.Key) > 0 {
			t.Fatalf("entry %q after %q", e.Key, prev)
		}
		prev = append(prev[:0], e.Key...)
	}
	if n != m.tally.Entries {
		t.Fatalf("%d entries, want %d", n, m.tally.Entries)
	}
	count := int64(0)
	if err := ks.Unordered(func(*store.Entry) error { count++; return nil }); err != nil || count != n {
		t.Fatalf("%d entries unordered, want %d; %v", count, n, err)
	}
}

// TestMergeNeedsAMerger: operands are refused, with their key, if the format has no merger; the merger's error is
// placed.
func TestMergeNeedsAMerger(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""), testsst.NewEntry("m", 2, base.KindMerge, "x"), testsst.Put("n", 1, ""))
	dir := d.Finish()
	err := rowsError(dir, store.Options{})
	if !errors.Is(err, base.ErrUnsupported) || !strings.Contains(err.Error(), `key "m"`) {
		t.Errorf("error %v", err)
	}
	broken := errors.New("broken operand")
	o := store.Options{Merger: &store.Merger{Fold: func(_, _, _ []byte, _ [][]byte) ([]byte, bool, error) {
		return nil, false, broken
	}}}
	err = rowsError(dir, o)
	wantCorrupt(t, err, "000010.sst")
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	// With a merger the row is readable; its place is the newest operand's.
	ks := openTest(t, dir, store.Options{Merger: testsst.JoinMerger}).Keyspaces()[0]
	it, err := ks.Rows([]byte("m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if p := it.Place(); p.Level != -1 {
		t.Errorf("place before the first row %+v", p)
	}
	if k, v, err := it.Next(); string(k) != "m" || string(v) != "x" || err != nil || it.Place().Seq != 2 {
		t.Errorf("%q = %q, %v at %+v", k, v, err, it.Place())
	}
	if err := it.SeekGE([]byte("b")); err != nil {
		t.Error(err)
	}
	if k, _, err := it.Next(); string(k) != "n" || err != nil || it.Place().Seq != 1 {
		t.Errorf("%q, %v at %+v", k, err, it.Place())
	}
}

// TestTies: merging falls back to whole keys where the codes of the loser tree are equal.
func TestTies(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	keys := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00\x00\x00\x00\x00", "a\x00\x00\x00\x00\x00\x00\x01", "ab", "\xff\xff\xff\xff\xff",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", long, long + "a", long + "aaaaaaaa", long + "aaaaaaab", long + "b"}
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		d := testsst.NewDB(t)
		var all []testsst.Entry
		seq := uint64(1)
		for range 2 + r.Intn(6) {
			var part []testsst.Entry
			for _, k := range keys {
				if r.Intn(2) == 0 {
					part = append(part, testsst.Put(k, seq, fmt.Sprint(seq)))
					seq++
				}
			}
			if len(part) > 0 {
				all = append(all, part...)
				d.Table(0, 0, testsst.Spec{BlockSize: 1 << r.Intn(12)}, part...)
			}
		}
		m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger}
		m.read(all)
		checkModel(t, seed, openTest(t, d.Finish(), store.Options{}).Keyspaces()[0], m, r)
	}
}

// TestHugeKeys: shared prefixes longer than a code can express.
func TestHugeKeys(t *testing.T) {
	long := strings.Repeat("k", 1<<24+10)
	d := testsst.NewDB(t)
	d.Table(0, 0, testsst.Spec{}, testsst.Put(long+"b", 1, "1"), testsst.Put(long+"d", 1, "1"))
	d.Table(0, 0, testsst.Spec{}, testsst.Put(long+"a", 2, "2"), testsst.Put(long+"c", 2, "2"), testsst.Put(long+"d", 2, "2"))
	rows, n := testsst.ReadRows(t, openTest(t, d.Finish(), store.Options{}).Keyspaces()[0], nil, nil)
	got := ""
	for _, r := range rows {
		got += string(r.Key[len(long):]) + string(r.Value)
	}
	if got != "a2b1c2d2" || n.Superseded != 1 {
		t.Errorf("rows %s, %+v", got, n)
	}
}
