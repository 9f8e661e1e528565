package rocksfile

import (
	"bytes"
	"slices"
	"strings"

	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/manifest"
)

// Sample returns about n keys: the first keys of blocks, evenly spaced by bytes over each run.
func (ks *keyspace) Sample(n int) ([]store.Weighted, error) {
	if err := ks.prepare(); err != nil {
		return nil, err
	}
	var total int64
	for _, r := range ks.all {
		for _, t := range r.tables {
			total += t.meta.Size
		}
	}
	step := max(total/int64(max(n, 1)), 1)
	var out []store.Weighted
	for _, r := range ks.all {
		var err error
		if out, err = ks.sampleRun(out, r, step); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sampleRun appends a key of the run for every step bytes of blocks, and one for what is left.
func (ks *keyspace) sampleRun(out []store.Weighted, r *sortedRun, step int64) ([]store.Weighted, error) {
	var have int64
	for _, t := range r.tables {
		var err error
		if out, have, err = t.sample(out, have, step, ks.st.opts.Salvage); err != nil {
			return nil, err
		}
	}
	if have > 0 {
		out = append(out, store.Weighted{Key: bytes.Clone(r.tables[len(r.tables)-1].largest), Bytes: have})
	}
	return out, nil
}

// sample does so for one table; have is what was passed since the last key. The index of a spool has keys, the last of
// each block, which spares reading a block that may be one large value. What a salvage cannot read is left to those who
// read rows.
func (t *table) sample(out []store.Weighted, have, step int64, salvage bool) ([]store.Weighted, int64, error) {
	var idx tableIndex
	pass := func(_ blocks.Handle, _ []byte, err error) bool { return salvage && base.IsDamage(err) }
	idx.pass = pass
	defer idx.close()
	if err := idx.open(t); err != nil {
		if pass(t.info.index, nil, err) {
			return out, have, nil
		}
		return nil, 0, base.BlockError(err)
	}
	for {
		ok, err := idx.next()
		if !ok || err != nil {
			return out, have, err
		}
		e := idx.entry()
		if have += int64(e.handle.Size); have < step {
			continue
		}
		key := bytes.Clone(e.sep)
		if t.origins == nil {
			first, err := t.firstKey(e.handle)
			if err != nil && !pass(e.handle, e.sep, err) {
				return nil, 0, base.BlockError(err)
			}
			if err == nil {
				key = first
			}
		}
		out, have = append(out, store.Weighted{Key: key, Bytes: have}), 0
	}
}

// firstKey returns the first user key of a block.
func (t *table) firstKey(h blocks.Handle) ([]byte, error) {
	w := files.Window{All: new(files.Windows)}
	w.Open(t.file)
	defer w.Close()
	b, _, err := t.loadBlock(&w, h, nil)
	if err != nil {
		return nil, t.fail(int64(h.Off), fieldBlock, err)
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return nil, t.fail(int64(h.Off), fieldBlock, err)
	}
	e := blocks.Entries{Data: bl.Entries}
	ok, err := e.Next()
	if err == nil && (!ok || len(e.Key) < base.TrailerLen) {
		err = blocks.ErrEntry
	}
	if err != nil {
		return nil, t.fail(int64(h.Off), fieldBlock, err)
	}
	user, _ := base.SplitKey(e.Key)
	return bytes.Clone(user), nil
}

// Files lists CURRENT, the MANIFEST, the logs that are needed and all tables that are there.
func (db *database) Files() []store.File {
	out := []store.File{
		{Path: manifest.CurrentName, Kind: "current", Size: int64(len(db.version.Name) + 1), Entries: -1, Deletes: -1},
		{Path: db.version.Name, Kind: "manifest", Size: db.version.Size, Entries: -1, Deletes: -1},
	}
	for _, l := range db.logs {
		out = append(out, store.File{Path: l.name, Kind: "log", Size: l.file.Size, Entries: l.entries, Deletes: -1})
	}
	for _, ks := range db.spaces {
		for _, t := range ks.tables {
			if !t.missing() {
				out = append(out, t.describe())
			}
		}
	}
	return out
}

// describe says what is known about a table. What cannot be read is left unknown: whoever reads
// rows will see the error.
func (t *table) describe() store.File {
	f := store.File{Path: t.file.Name, Kind: "table", Keyspace: t.keyspace, Level: t.meta.Level, Size: t.file.Size,
		Entries: -1, Deletes: -1, Smallest: slices.Clone(t.smallest), Largest: slices.Clone(t.largest),
		MinSeq: t.meta.MinSeq, MaxSeq: t.meta.MaxSeq}
	info, err := t.load()
	if err != nil {
		return f
	}
	f.Entries, f.Deletes = info.entries, info.deletes
	f.Codec = t.codecOf(info)
	return f
}

// codecOf names the codec of a table: as its properties say, else as its first block has it.
func (t *table) codecOf(info *tableInfo) string {
	names := map[string]string{"NoCompression": "none", "Snappy": "snappy", "Zlib": "zlib", "BZip2": "bzip2",
		"LZ4": "lz4", "LZ4HC": "lz4hc", "ZSTD": "zstd", "ZSTDNotFinal": "zstd", "Xpress": "xpress"}
	if n, ok := names[info.compression]; ok {
		return n
	}
	if info.compression != "" {
		return strings.ToLower(info.compression)
	}
	var idx tableIndex
	if idx.open(t) != nil {
		return ""
	}
	defer idx.close()
	if ok, err := idx.next(); !ok || err != nil {
		return ""
	}
	h := idx.entry().handle
	var b [1]byte
	if h.Check(t.file.Size) != nil || t.file.ReadFull(b[:], int64(h.Off+h.Size)) != nil {
		return ""
	}
	return codecName(t.codec(b[0]))
}
