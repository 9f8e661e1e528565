package rocks

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// blobFiles are the blob files of a column family: an lsm.ValueSource.
type blobFiles struct {
	fam   *family
	files map[uint64]*blobFile
	order []*blobFile // by number

	mu       sync.Mutex
	unlisted map[uint64]*blobFile // referenced by tables, but not listed in the MANIFEST
}

// blobFile is a blob file of a column family.
type blobFile struct {
	fam  *family
	meta manifest.Blob
	path string
	name string
	file *files.File // nil if missing

	once sync.Once
	f    *blobData
	err  error

	skips lsm.Skips
}

// blobExt ends the names of blob files.
const blobExt = ".blob"

// blobName is the name of a blob file.
func blobName(number uint64) string { return fmt.Sprintf("%06d%s", number, blobExt) }

// open reads the header of the file, once.
func (b *blobFile) open() (*blobData, error) {
	b.once.Do(func() { b.f, b.err = openBlob(b.file, b.file.Size, b.path, b.fam.id) })
	return b.f, b.err
}

// blobReader resolves blob indexes for one iterator.
type blobReader struct {
	all   *blobFiles
	rd    blobBuffer
	plain []byte // room for a decompressed value
}

// NewReader starts reading for one goroutine.
func (s *blobFiles) NewReader() lsm.ValueReader { return &blobReader{all: s} }

// Size returns the approximate memory of a reader, in bytes.
func (s *blobFiles) Size() int64 {
	if len(s.files) == 0 {
		return 0
	}
	return blobWindow
}

// Value returns the value that a blob index points to.
func (r *blobReader) Value(key, index []byte, at record.Place) ([]byte, error) {
	ks := r.all.fam
	x, err := decodeBlobPointer(index)
	if err != nil {
		err = ks.indexError(err, key, at)
		if ks.Salvages(err) {
			ks.Unread(at, 0, err, lsm.Reason(err)+"; the row is missing")
			return nil, lsm.ErrLostValue
		}
		return nil, base.BlockError(err)
	}
	b := r.all.file(x.File)
	v, err := r.read(b, x, key)
	if err == nil || !ks.Salvages(err) {
		return v, base.BlockError(err)
	}
	b.lost(x, key, err)
	return nil, lsm.ErrLostValue
}

// GiveBack frees the memory of the last value.
func (r *blobReader) GiveBack() {
	r.plain = nil
	r.rd.Trim()
}

// At returns the place that a blob index points to.
func (r *blobReader) At(index []byte) record.Place {
	x, err := decodeBlobPointer(index)
	if err != nil {
		return record.Place{}
	}
	return record.Place{File: r.all.file(x.File).name, Off: int64(x.Offset), Level: -1}
}

// indexError places an error of a blob index.
func (ks *family) indexError(err error, key []byte, at record.Place) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		err = c.Err
	}
	return &record.CorruptError{Keyspace: ks.Name(), Key: key, File: at.File, Off: at.Off, Field: "blob index", Err: err}
}

// file returns a file by its number.
func (s *blobFiles) file(number uint64) *blobFile {
	if b := s.files[number]; b != nil {
		return b
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.unlisted[number]
	if b == nil {
		b = &blobFile{fam: s.fam, name: blobName(number), path: filepath.Join(s.fam.st.dir, blobName(number))}
		b.once.Do(func() {
			b.err = base.Corrupt(b.path, record.NoOffset, "blob file", errors.New("tables refer to it, and the MANIFEST does not name it"))
		})
		if s.unlisted == nil {
			s.unlisted = map[uint64]*blobFile{}
		}
		s.unlisted[number] = b
	}
	return b
}

// bigValue is the size of values whose room is not kept.
const bigValue = 512 << 10

// tooRoomy reports whether a buffer that one large value needed should be dropped before a small value.
func tooRoomy(room int, size uint64) bool { return room > bigValue && size < bigValue/16 }

// read reads a value of a file.
func (r *blobReader) read(b *blobFile, x blobPointer, key []byte) ([]byte, error) {
	f, err := b.open()
	if err != nil {
		return nil, err
	}
	if tooRoomy(cap(r.plain), x.Size) {
		r.plain = nil
		r.rd.Trim()
	}
	stored, err := r.rd.Value(f, x, key)
	if err != nil || x.Codec == 0 {
		return stored, err
	}
	v, err := b.fam.st.packers.UnpackValue(r.plain, x.Codec, stored)
	if err != nil {
		return nil, base.Corrupt(b.path, int64(x.Offset), "value", err)
	}
	r.plain = v
	return v, nil
}

// lost reports an unreadable value once. All values of an unreadable file share one report.
func (b *blobFile) lost(x blobPointer, key []byte, err error) {
	at := x.Offset - min(x.Offset, uint64(blobRecordLen+len(key)))
	f := record.Finding{Kind: lsm.Newer(record.FindDamagedBlob, err), Severity: record.Error, Keyspace: b.fam.Name(),
		Place: record.Place{File: b.name, Off: int64(at), Level: -1}}
	if _, whole := b.open(); whole != nil {
		at, f.Place.Off = lsm.WholeTable, record.NoOffset
		var missing *store.MissingError
		if errors.As(err, &missing) {
			f.Kind = record.FindMissingFile
		}
		f.Detail = lsm.Reason(err) + "; the rows whose values it has are missing"
	} else {
		f.Detail = fmt.Sprintf("%s; the row of key %s is missing", lsm.Reason(err), record.Quote(key))
	}
	if b.skips.First(at) {
		b.fam.Env.Report(f)
	}
}

// check verifies a whole file, including garbage. Damage to values that rows need is reported by the row reader.
func (b *blobFile) check() error {
	f, err := b.open()
	if err != nil {
		return nil
	}
	warn := func(off int64, detail string) {
		b.fam.Env.Report(record.Finding{Kind: record.FindDamagedBlob, Severity: record.Warning, Keyspace: b.fam.Name(),
			Place: record.Place{File: b.name, Off: off, Level: -1}, Detail: detail})
	}
	damaged := false
	n, err := f.Scan(func(off int64, err error) error {
		damaged = true
		if b.skips.First(uint64(off)) {
			warn(off, lsm.Reason(err)+"; no row that was read needs it")
		}
		return nil
	})
	if err == nil && !damaged && !b.fam.st.version.Rebuilt &&
		(uint64(n.Count) != b.meta.Count || uint64(n.Bytes) != b.meta.Bytes) {
		warn(record.NoOffset, fmt.Sprintf("%s values in %s bytes, but %s in %s by the MANIFEST", record.Number(n.Count),
			record.Number(n.Bytes), record.Number(b.meta.Count), record.Number(b.meta.Bytes)))
	}
	return err
}

// describe returns a blob file as listed by Files.
func (b *blobFile) describe() store.File {
	out := store.File{Path: b.name, Kind: "blobs", Keyspace: b.fam.Name(), Level: -1, Size: b.file.Size,
		Garbage: int64(b.meta.GarbageBytes), Entries: int64(b.meta.Count), Deletes: -1}
	if b.fam.st.version.Rebuilt {
		out.Entries = -1
	}
	if f, err := b.open(); err == nil {
		out.Codec = sst.CodecName(f.Codec)
	}
	return out
}
