package build

import (
	"cmp"
	"os"
	"path/filepath"

	"kvferry/internal/sys/disk"
	"kvferry/store"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// tableOptions are the options of every table of a column family.
func (b *builder) tableOptions(id int, name string, c store.Comparer) *sst.WriterOptions {
	o := &sst.WriterOptions{
		Comparer:   c,
		Merger:     b.opts.Merger,
		FamilyID:   uint32(id),
		FamilyName: name,
		Identity:   b.identity,
		Buffer:     b.opts.Buffer,
		External:   b.opts.External,
		Spare:      b.opts.Spare,
	}
	if !b.opts.Now.IsZero() {
		o.Created = max(0, b.opts.Now.Unix())
	}
	switch {
	case b.levelDB:
		o.Format, o.Sequence = sst.LevelDB, manifest.FirstSequence
	case b.opts.TableVersion == 5:
		o.Format = sst.RocksDB5
	}
	return o
}

// tableWriter writes one table.
type tableWriter struct {
	*sst.Writer
	f    *disk.File
	sync *disk.Syncer // nil: not made durable here
}

// newTable starts a table in a file of that name, replacing the file of an interrupted run.
func (b *builder) newTable(name string, s *space) (*tableWriter, error) {
	f, err := disk.OpenFile(filepath.Join(b.dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if b.syncs != nil {
		f.Stream()
	}
	return &tableWriter{sst.NewWriter(f, s.opts), f, b.syncs}, nil
}

// close writes the rest of the table. It becomes durable in the background.
func (t *tableWriter) close() (sst.Written, *disk.Syncing, error) {
	w, err := t.Close()
	if err == nil && t.sync != nil {
		return w, t.sync.Start(t.f), nil
	}
	err = cmp.Or(err, t.f.Close())
	return w, nil, err
}

// abort closes the file without finishing the table.
func (t *tableWriter) abort() { t.f.Close() }
