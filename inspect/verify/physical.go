package verify

import (
	"bytes"
	"context"
	"fmt"

	"kvferry/inspect"
	"kvferry/record"
	"kvferry/store"
)

// physical checks the files of a store: every block, the order of keys in each file, and the content of each table
// against its properties and its bounds in the MANIFEST.
type physical struct {
	owners map[store.Keyspace]inspect.Owner
	report func(record.Finding)
	// damaged is true if a block of the file could not be read, which explains missing rows.
	damaged func(file string) bool
	dir     string
	files   map[string]*fileCheck
	entries int64
	bytes   int64 // size of all files
}

// fileCheck holds the observations about a file.
type fileCheck struct {
	store.File
	seen            int64 // entries, including range tombstones
	deletes, ranges int64 // tombstones of keys and of ranges
	lastKey         []byte
	lastSeq         uint64
	disordered      bool
	outside         *record.Finding // the first key outside the bounds
}

// store checks one store.
func (p *physical) store(ctx context.Context, st inspect.StoreDir) error {
	p.dir, p.files = st.Dir, make(map[string]*fileCheck)
	for _, f := range st.Files() {
		p.files[f.Path] = &fileCheck{File: f}
		p.bytes += f.Size
	}
	for _, ks := range st.Keyspaces() {
		if err := p.keyspace(ctx, ks); err != nil {
			return err
		}
	}
	return nil
}

// keyspace reads all entries of a keyspace in physical order.
func (p *physical) keyspace(ctx context.Context, ks store.Keyspace) error {
	of, ok := p.owners[ks]
	if !ok {
		of.Name = inspect.Placed(p.dir, ks.Name())
	}
	report := func(f record.Finding) {
		f.DB, f.Keyspace = of.DB, of.Name
		p.report(f)
	}
	var cur *fileCheck
	compare := ks.Comparer().Compare
	err := ks.Unordered(func(e *store.Entry) error {
		if p.entries++; p.entries%(record.CheckEvery*64) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if cur == nil || cur.Path != e.Place.File {
			if cur = p.files[e.Place.File]; cur == nil {
				cur = &fileCheck{File: store.File{Path: e.Place.File, Entries: -1, Deletes: -1}}
				p.files[e.Place.File] = cur
			}
		}
		p.entry(cur, e, compare, ks, report)
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range p.files {
		if f.Kind == "table" && f.Keyspace == ks.Name() {
			p.counts(f, report)
		}
	}
	return nil
}

// entry checks one entry.
func (p *physical) entry(f *fileCheck, e *store.Entry, compare func(a, b []byte) int, ks store.Keyspace,
	report func(record.Finding)) {
	f.seen++
	switch e.Kind {
	case store.Delete, store.SingleDelete:
		f.deletes++
	case store.RangeDelete:
		f.ranges++
		return // range tombstones have their own block
	}
	if f.Kind != "table" {
		return
	}
	if f.lastKey != nil && !f.disordered {
		c := compare(f.lastKey, e.Key)
		if c > 0 || c == 0 && f.lastSeq < e.Seq {
			f.disordered = true
			err := &store.OrderError{File: f.Path, Off: e.Place.Off, Keyspace: ks.Name(), Comparer: ks.Comparer().Name,
				Prev: bytes.Clone(f.lastKey), Next: bytes.Clone(e.Key)}
			report(orderFinding(err, inspect.Placed(p.dir, f.Path), e.Place.Level))
		}
	}
	f.lastKey, f.lastSeq = append(f.lastKey[:0], e.Key...), e.Seq
	if f.outside == nil && (f.Smallest != nil && compare(e.Key, f.Smallest) < 0 ||
		f.Largest != nil && compare(e.Key, f.Largest) > 0) {
		f.outside = &record.Finding{Kind: record.FindFileBounds, Severity: record.Error, Place: p.place(f, e.Place),
			Detail: fmt.Sprintf(
				"key %s is outside %s to %s, the bounds in the MANIFEST", record.Quote(e.Key), record.Quote(f.Smallest),
				record.Quote(f.Largest))}
	}
}

func (p *physical) place(f *fileCheck, at record.Place) record.Place {
	at.File = inspect.Placed(p.dir, f.Path)
	return at
}

// counts compares the content of a table with its properties. It reports no difference that damage or disorder
// explains.
func (p *physical) counts(f *fileCheck, report func(record.Finding)) {
	place := record.Place{File: inspect.Placed(p.dir, f.Path), Off: record.NoOffset, Level: f.Level}
	if f.outside != nil && !f.disordered {
		report(*f.outside)
	}
	if p.damaged(place.File) {
		return
	}
	// Engines differ in whether they count range tombstones.
	switch {
	case f.Entries >= 0 && f.Entries != f.seen && f.Entries != f.seen-f.ranges:
		report(record.Finding{Kind: record.FindEntryCount, Severity: record.Error, Place: place,
			Detail: fmt.Sprintf("entries by its properties: %s, found: %s", record.Number(f.Entries), record.Number(f.seen))})
	case f.Deletes >= 0 && f.Deletes != f.deletes && f.Deletes != f.deletes+f.ranges:
		report(record.Finding{Kind: record.FindDeleteCount, Severity: record.Error, Place: place,
			Detail: fmt.Sprintf("tombstones by its properties: %s, found: %s", record.Number(f.Deletes),
				record.Number(f.deletes+f.ranges))})
	}
}

// orderFinding returns the finding for two rows out of order.
func orderFinding(e *store.OrderError, file string, level int) record.Finding {
	return record.Finding{Kind: record.FindKeyOrder, Severity: record.Error,
		Place: record.Place{File: file, Off: e.Off, Level: level},
		Detail: fmt.Sprintf("key %s after %s is not in the order of %s; the file was sorted for this check",
			record.Quote(e.Next), record.Quote(e.Prev), e.Comparer)}
}
