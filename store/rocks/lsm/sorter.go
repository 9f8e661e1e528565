package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
)

// Sorter sorts entries, of the logs or of a table in disorder, into a spool.
type Sorter struct {
	ks       *Keyspace
	sorter   *extsort.Sorter
	bytewise bool
	key      []byte
	value    []byte
	Bytes    int64 // of keys and values
	large    largeValues
}

// NewSorter returns a sorter that holds at most memory bytes.
func NewSorter(ks *Keyspace, memory int64) *Sorter {
	compare := ks.cmp.Compare
	return &Sorter{ks: ks, bytewise: ks.cmp.IsBytewise(), sorter: extsort.New(extsort.Options{Memory: memory,
		TempDir: ks.Env.TempDir, Compare: func(a, b []byte) int { return base.CompareKeys(compare, a, b) }})}
}

// Add copies an entry.
func (s *Sorter) Add(user []byte, tr uint64, value []byte, o Origin) error {
	if len(value) > largeValue {
		return s.AddLarge(user, tr, int64(len(value)), bytes.NewReader(value), o)
	}
	s.value = o.append(append(s.value[:0], value...))
	return s.put(user, tr, int64(len(value)))
}

// AddLarge copies an entry whose value, of n bytes, is read from src.
func (s *Sorter) AddLarge(user []byte, tr uint64, n int64, src io.Reader, o Origin) error {
	ref, err := s.large.put(s.ks.Env.TempDir, n, src)
	if err != nil {
		return err
	}
	o.File |= largeFlag
	s.value = o.append(ref.append(s.value[:0]))
	return s.put(user, tr, n)
}

// put adds the entry whose value, of n bytes, is in s.value.
func (s *Sorter) put(user []byte, tr uint64, n int64) error {
	s.key = base.AppendKey(s.key[:0], user, tr)
	s.Bytes += int64(len(s.key)) + n
	prefix := uint64(0)
	if s.bytewise {
		prefix = keyPrefix(user)
	}
	return s.sorter.Add(prefix, s.key, s.value)
}

// keyPrefix returns the first 8 bytes of a key as a number, zero-padded: it decides most comparisons.
func keyPrefix(user []byte) uint64 {
	if len(user) >= 8 {
		return binary.BigEndian.Uint64(user)
	}
	var b [8]byte
	copy(b[:], user)
	return binary.BigEndian.Uint64(b[:])
}

// Close drops the entries.
func (s *Sorter) Close() error { return errors.Join(s.sorter.Close(), s.large.close()) }

// Spool writes the sorted entries to a new table, which stays in memory up to inMemory bytes. It returns nil if empty.
func (s *Sorter) Spool(level int, origins []string, inMemory int64) (*Table, error) {
	if s.sorter.Len() == 0 {
		return nil, nil
	}
	it, err := s.sorter.Sort()
	if err != nil {
		return nil, err
	}
	var mem bytes.Buffer
	w := &spoolWriter{w: &mem}
	var file *files.File
	if s.Bytes > inMemory {
		f, err := s.ks.spoolFile()
		if err != nil {
			return nil, err
		}
		file, w.w = files.Temporary(f, f.Name(), s.ks.spooled), io.NewOffsetWriter(f, s.ks.spooled)
	}
	if err := s.write(w, it); err != nil || w.entries == 0 {
		return nil, err
	}
	if file != nil {
		s.ks.spooled += int64(w.off)
	} else {
		file = files.Memory("memory", mem.Bytes())
	}
	return w.table(s.ks, file, level, origins)
}

// write writes the sorted entries. Duplicates of the same entry, as in two logs, are written once.
func (s *Sorter) write(w *spoolWriter, it *extsort.Iterator) error {
	var last []byte // identifies the value of the previous entry
	wasLarge := false
	for {
		_, k, v, err := it.Next()
		if err == io.EOF {
			return w.flush()
		}
		if err != nil {
			return err
		}
		value := v[:len(v)-originLen]
		o := decodeOrigin(v)
		large := o.File&largeFlag != 0
		var ref largeRef
		if large {
			ref = decodeLargeRef(value)
			value = value[8:] // without the offset
		}
		if w.entries > 0 && bytes.Equal(k, w.last) {
			if large != wasLarge || !bytes.Equal(value, last) {
				user, tr := base.SplitKey(k)
				return &record.CorruptError{Keyspace: s.ks.name, Key: bytes.Clone(user), Off: record.NoOffset, Field: "sequence",
					Err: fmt.Errorf("two entries of different values have sequence number %d", tr>>8)}
			}
			continue
		}
		last, wasLarge = append(last[:0], value...), large
		if large {
			o.File &^= largeFlag
			err = s.large.copy(w, k, ref, o)
		} else {
			err = w.add(k, v)
		}
		if err != nil {
			return err
		}
	}
}
