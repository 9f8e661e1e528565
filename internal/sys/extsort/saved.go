package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Save writes all rows in order to a new file for Load, and syncs it. The rows stay in the sorter until Reset or
// Close.
//
//	+-------------------+-----------+--------------------+---------------+
//	| a run, see spill  | rows (8B) | largest frame (8B) | checksum (4B) |
//	+-------------------+-----------+--------------------+---------------+
//
// All numbers are little endian. checksum is the CRC32c of both numbers.
func (s *Sorter) Save(path string) (bytes int64, err error) {
	it, err := s.Sort()
	if err != nil {
		return 0, err
	}
	f, err := disk.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := &spool{f: f}
	r, err := it.write(to)
	if err != nil {
		return 0, err
	}
	foot := binary.LittleEndian.AppendUint64(nil, uint64(r.items))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(r.frame))
	foot = binary.LittleEndian.AppendUint32(foot, crc32.Checksum(foot, castagnoli))
	if _, err := f.WriteAt(foot, to.size); err != nil {
		return 0, err
	}
	return to.size + footLen, f.Sync()
}

const footLen = 8 + 8 + 4

// Load adds the rows of a file that Save wrote. The file is read during the merge and must exist until Close.
func (s *Sorter) Load(path string) (err error) {
	if s.reading {
		return errSorted
	}
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	end := st.Size() - footLen
	if end < 0 {
		return &record.CorruptError{File: path, Field: "number of rows", Err: record.ErrShort}
	}
	var foot [footLen]byte
	if _, err := f.ReadAt(foot[:], end); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rows, frame := binary.LittleEndian.Uint64(foot[:]), binary.LittleEndian.Uint64(foot[8:])
	if crc32.Checksum(foot[:16], castagnoli) != binary.LittleEndian.Uint32(foot[16:]) || frame > uint64(end) {
		return &record.CorruptError{File: path, Off: end, Field: "number of rows", Err: errChecksum}
	}
	s.total += int(rows)
	if end > 0 {
		s.runs = append(s.runs, run{end: end, items: int(rows), frame: int(frame), file: path})
	}
	return nil
}

// source opens the file of a run. It is closed at the end of the merge.
func (s *Sorter) source(r *run) (*spool, error) {
	if r.file == "" {
		return s.spilled, nil
	}
	f, err := disk.Open(r.file)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	return &spool{f: f}, nil
}

// closeFiles closes the files of loaded runs.
func (s *Sorter) closeFiles() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// write writes all rows as a run.
func (it *Iterator) write(to *spool) (run, error) {
	w := runWriter{s: it.s, to: to}
	w.begin()
	for {
		prefix, key, value, err := it.Next()
		if err == io.EOF {
			return w.end()
		}
		if err != nil {
			return run{}, err
		}
		if err := w.add(prefix, key, value); err != nil {
			return run{}, err
		}
	}
}
