package rocks

import (
	"cmp"
	"sync"

	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// tableSource is a table file as a keyspace reads it.
type tableSource struct {
	*sst.Reader
	once  sync.Once
	info  lsm.Info
	file  *files.File
	claim *claim       // nil for a table that is not listed in the MANIFEST
	rest  func() error // sync.OnceValue of checkRest; nil: reading rows does without the rest
}

// newSource returns the source of a table file. All sources share the caches of the database.
func (db *database) newSource(f *files.File, o *sst.Options) *tableSource {
	o.LevelDB, o.Cache, o.Hot, o.Windows, o.Unpackers, o.Own = db.levelDB, &db.indexes, db.opts.Hot, &db.env.Windows, &db.packers,
		db.opts.Own
	o.Salvage = db.opts.Salvage
	s := &tableSource{Reader: sst.NewReader(f, o), file: f}
	if o.Own {
		s.rest = sync.OnceValue(s.checkRest)
	}
	return s
}

// Open reads the table's metadata, once.
func (s *tableSource) Open() (*lsm.Info, error) {
	i, err := s.Reader.Open()
	s.once.Do(func() {
		s.info = lsm.Info{Index: i.Index, RangeDel: i.RangeDel, TombErr: i.TombstoneErr, FixedSeq: i.FixedSeq,
			UseFixed: i.UseFixed}
		for _, d := range i.Tombstones {
			s.info.Tombstones = append(s.info.Tombstones, lsm.Tombstone{Start: d.Start, End: d.End, Seq: d.Seq})
		}
		if s.claim != nil && err == nil {
			s.claim.opened(s.Reader, i)
			s.info.Exact = len(i.Tombstones) == 0 && i.TombstoneErr == nil
		}
	})
	if s.claim != nil && err == nil {
		err = s.claim.err
	}
	return &s.info, err
}

// checkRest returns the first fault of the blocks that reading rows does not need. An engine may miss rows by them.
func (s *tableSource) checkRest() (fault error) {
	_, err := s.CheckBlocks(nil, func(off uint64, err error) { fault = cmp.Or(fault, s.Fail(int64(off), lsm.FieldBlock, err)) })
	return cmp.Or(err, fault)
}

// Walk starts before the first block. The first walk compares the ends of the table with the MANIFEST.
func (s *tableSource) Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error) {
	if err := s.check(); err != nil {
		return reuse, err
	}
	return s.Reader.Walk(reuse, pass)
}

// Find returns the block that may hold a key, like sst.Reader.Find.
func (s *tableSource) Find(key []byte) (b *blocks.Kept, ok bool) {
	if s.check() != nil {
		return nil, false
	}
	return s.Reader.Find(key)
}

// check returns the first fault of the table as a whole, which it looks for once.
func (s *tableSource) check() (err error) {
	if s.claim != nil {
		err = s.claim.walked(s.Reader)
	}
	if err == nil && s.rest != nil {
		err = s.rest()
	}
	return err
}
