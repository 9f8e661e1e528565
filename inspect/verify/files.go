package verify

import (
	"cmp"
	"context"
	"slices"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/record"
	"kvferry/store"
)

// unlisted is the number of entries of tables without counts, unknown that of logs.
const (
	unlisted = -1
	unknown  = -2
)

// own lists the stores that the part checks, which hold selected records: each store is one part's.
func (v *verifier) own(src format.Source) (out []inspect.StoreDir) {
	all := v.stores.All()
	share := v.o.Scan.Share
	if share.N > 0 {
		slices.SortStableFunc(all, func(a, b inspect.StoreDir) int { return cmp.Compare(a.Dir, b.Dir) })
	}
	for i, st := range all {
		if (share.N == 0 || i%share.N == share.K-1) && v.concerns(src, st) {
			out = append(out, st)
		}
	}
	return out
}

// files checks all files of the opened stores.
func (v *verifier) files(ctx context.Context, src format.Source) error {
	p := &physical{owners: inspect.Owners(src), report: v.found.report, damaged: func(file string) bool {
		return v.found.names(record.FindDamagedBlock, file) || v.found.names(record.FindForeignTable, file)
	}}
	v.listed = v.listing()
	v.res.Files, v.res.Bytes = v.stores.FilesOf(src)
	if v.res.Data += v.stores.Data(); v.res.Data == 0 {
		v.res.Data = v.res.Bytes
	}
	v.looked = v.o.Files == Always || v.o.Files == Automatic && v.suspicious(v.readsAll())
	if v.found.split { // what this part has read is no reason: Merge knows all
		v.looked = v.o.Files == Always || v.o.Files == Automatic && (v.readsAll() && v.listed == unlisted ||
			len(v.stores.All()) == 0)
	}
	if !v.looked {
		return nil
	}
	for _, st := range v.own(src) {
		if err := p.store(ctx, st); err != nil {
			return err
		}
	}
	v.res.Entries = p.entries
	return nil
}

// blocks checks blocks without rows, such as filters, which no other pass reads.
func (v *verifier) blocks(ctx context.Context, src format.Source) error {
	if v.o.Files == Never {
		return nil
	}
	for _, st := range v.own(src) {
		c, ok := st.Store.(store.BlockChecker)
		if !ok {
			continue
		}
		if err := c.CheckBlocks(ctx); err != nil {
			return err
		}
	}
	return nil
}

// suspicious reports whether the files need a second pass: some part was unreadable, or the number of entries differs
// from the properties of the files. Counts are not compared if only part of the dataset was read.
func (v *verifier) suspicious(whole bool) bool {
	if len(v.damage) > 0 || v.res.Skipped > 0 {
		return true
	}
	var read int64
	for _, t := range v.ledger.Snapshot() {
		read += t.Entries
	}
	return whole && v.listed != unknown && read != v.listed
}

// listing returns the number of entries by the properties of the files.
func (v *verifier) listing() (said int64) {
	for _, st := range v.stores.All() {
		for _, f := range st.Files() {
			switch {
			case f.Kind != "table" && f.Kind != "log":
			case f.Entries >= 0:
				said += f.Entries
			case f.Kind == "table": // of LevelDB, without counts
				return unlisted
			default:
				return unknown
			}
		}
	}
	return said
}

// readsAll reports whether all rows are read: the selection covers all types of all databases, and no span of keys.
func (v *verifier) readsAll() bool {
	sel := v.o.Scan.Selected()
	return sel.Types == 0 && len(sel.DBs) == 0 && sel.Spans() == nil
}

// concerns reports whether a store can hold selected records.
func (v *verifier) concerns(src format.Source, st inspect.StoreDir) bool {
	sel := v.o.Scan.Selected()
	if v.readsAll() {
		return true
	}
	owned := inspect.Owners(src)
	for _, ks := range st.Keyspaces() {
		of, ok := owned[ks]
		if !ok {
			return true
		}
		if !sel.DB(of.DB) {
			continue
		}
		for _, r := range src.Where(of.DB, []byte("x")) {
			if r.Keyspace == of.Name && (r.Type == 0 || sel.Type(r.Type)) {
				return true
			}
		}
	}
	return false
}
