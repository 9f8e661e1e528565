package rocks

import (
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
	claim *claim // what the MANIFEST says; nil: it does not name the table
}

// newSource makes the source of a table file, which shares with others what they can share.
func (db *database) newSource(f *files.File, o *sst.Options) *tableSource {
	o.LevelDB, o.Cache, o.Windows, o.Unpackers = db.levelDB, &db.indexes, &db.env.Windows, &db.packers
	return &tableSource{Reader: sst.NewReader(f, o), file: f}
}

// Open reads what stands around the rows, once.
func (s *tableSource) Open() (*lsm.Info, error) {
	i, err := s.Reader.Open()
	s.once.Do(func() {
		s.info = lsm.Info{Index: i.Index, RangeDel: i.RangeDel, TombErr: i.TombstoneErr, FixedSeq: i.FixedSeq, UseFixed: i.UseFixed}
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

// Walk starts before the first block. The first walk compares the ends of the table with the MANIFEST.
func (s *tableSource) Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error) {
	if s.claim != nil {
		if err := s.claim.walked(s.Reader); err != nil {
			return reuse, err
		}
	}
	return s.Reader.Walk(reuse, pass)
}
