package rocks

import (
	"sync"

	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// tableSource is a table file as a keyspace reads it.
type tableSource struct {
	*sst.Reader
	once sync.Once
	info lsm.Info
}

// newSource makes the source of a table file, which shares with others what they can share.
func (db *database) newSource(f *files.File, o *sst.Options) *tableSource {
	o.LevelDB, o.Cache, o.Windows, o.Unpackers = db.levelDB, &db.indexes, &db.env.Windows, &db.packers
	return &tableSource{Reader: sst.NewReader(f, o)}
}

// Open reads what stands around the rows, once.
func (s *tableSource) Open() (*lsm.Info, error) {
	i, err := s.Reader.Open()
	s.once.Do(func() {
		s.info = lsm.Info{Index: i.Index, RangeDel: i.RangeDel, TombErr: i.TombstoneErr, FixedSeq: i.FixedSeq, UseFixed: i.UseFixed}
		for _, d := range i.Tombstones {
			s.info.Tombstones = append(s.info.Tombstones, lsm.Tombstone{Start: d.Start, End: d.End, Seq: d.Seq})
		}
	})
	return &s.info, err
}
