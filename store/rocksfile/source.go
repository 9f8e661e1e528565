package rocksfile

import (
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/sst"
	"sync"
)

// tableSource is a table file as a keyspace reads it.
type tableSource struct {
	*sst.Reader
	once sync.Once
	info sourceInfo
}

// newSource makes the source of a table file, which shares with others what they can share.
func (db *database) newSource(f *files.File, o *sst.Options) *tableSource {
	o.LevelDB, o.Cache, o.Windows, o.Unpackers = db.levelDB, &db.indexes, &db.env.windows, &db.packers
	return &tableSource{Reader: sst.NewReader(f, o)}
}

// Open reads what stands around the rows, once.
func (s *tableSource) Open() (*sourceInfo, error) {
	i, err := s.Reader.Open()
	s.once.Do(func() {
		s.info = sourceInfo{index: i.Index, rangeDel: i.RangeDel, tombErr: i.TombstoneErr, fixedSeq: i.FixedSeq, useFixed: i.UseFixed}
		for _, d := range i.Tombstones {
			s.info.tombstones = append(s.info.tombstones, tombstone{start: d.Start, end: d.End, seq: d.Seq})
		}
	})
	return &s.info, err
}
