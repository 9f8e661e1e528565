package ardb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kvferry/ardb/codec"
	"kvferry/internal/disk"
	"kvferry/internal/extsort"
	"kvferry/record"
	"kvferry/store"
)

// On LevelDB the server collects expired keys by an index that is ordered by expiry, across all
// namespaces. Every shard spools the rows it has to add, Finish sorts and writes them.
//
//	spool   +------------------+---------+- - -
//	        | length (uvarint) | row key |
//	        +------------------+---------+- - -

// ttlValue is the value of all rows of the index.
var ttlValue = []byte{byte(codec.KindTTL), 0}

// appendTTLKey appends a row key of the TTL index.
func appendTTLKey(dst []byte, ms int64, ns, user []byte) []byte {
	return codec.AppendKey(dst, codec.AppendText(nil, []byte(codec.TTLNamespace)), nil, codec.KindTTL, codec.IntData(ms), codec.TextData(ns), codec.TextData(user))
}

// spool is the file of one shard's TTL rows, made with the first.
type spool struct {
	dir   string
	table store.Table
	f     *disk.File
	w     *bufio.Writer
	buf   []byte
}

func newSpool(dir string, shard int) *spool {
	return &spool{dir: dir, table: store.Table{File: fmt.Sprintf("ttl-%06d.tmp", shard), Keyspace: codec.TTLNamespace, Shard: shard}}
}

func (s *spool) path() string { return filepath.Join(s.dir, s.table.File) }

func (s *spool) add(ms int64, ns, user []byte) error {
	if s.f == nil {
		if err := disk.MkdirAll(s.dir); err != nil {
			return err
		}
		f, err := disk.Create(s.path())
		if err != nil {
			return err
		}
		s.f, s.w = f, bufio.NewWriter(f)
	}
	key := appendTTLKey(nil, ms, ns, user)
	s.buf = append(binary.AppendUvarint(s.buf[:0], uint64(len(key))), key...)
	s.table.Entries++
	s.table.Bytes += int64(len(s.buf))
	_, err := s.w.Write(s.buf)
	return err
}

// close makes the file durable, as the tables it belongs to are.
func (s *spool) close() error {
	if s.f == nil {
		return nil
	}
	return errors.Join(s.w.Flush(), s.f.Sync(), s.f.Close())
}

func (s *spool) abort() {
	if s.f != nil {
		s.f.Close()
		disk.Remove(s.path())
	}
}

// checkSpool looks whether an adopted spool is there and whole.
func checkSpool(dir string, t store.Table) error {
	if filepath.Base(t.File) != t.File {
		return fmt.Errorf("%s: %q is not the name of a spool", dir, t.File)
	}
	st, err := disk.Stat(filepath.Join(dir, t.File))
	if err != nil {
		return err
	}
	if st.Size() != t.Bytes {
		return fmt.Errorf("%s: %d bytes, the journal says %d", filepath.Join(dir, t.File), st.Size(), t.Bytes)
	}
	return nil
}

// writeTTL writes the TTL index as one run.
func (t *target) writeTTL() (err error) {
	if len(t.ttl) == 0 {
		return nil
	}
	compare := codec.LevelDBComparer().Compare
	sorter := extsort.New(extsort.Options{Compare: compare, Memory: t.options.Memory, TempDir: t.options.TempDir})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	last := 0
	for shard, table := range t.ttl {
		last = max(last, shard)
		if err := loadSpool(sorter, filepath.Join(t.dir, table.File)); err != nil {
			return err
		}
	}
	rows, err := sorter.Sort()
	if err != nil {
		return err
	}
	run, err := t.builder.Run(defaultCF, last+1, 1)
	if err != nil {
		return err
	}
	for {
		_, key, _, err := rows.Next()
		if err == io.EOF {
			return run.Close()
		}
		if err == nil {
			err = run.Append(key, ttlValue)
		}
		if err != nil {
			run.Abort()
			return err
		}
	}
}

func loadSpool(sorter *extsort.Sorter, path string) error {
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	var key []byte
	for {
		n, err := binary.ReadUvarint(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n > maxSpooled {
			return &record.CorruptError{Format: "ardb", File: path, Off: record.NoOffset, Field: "length", Err: fmt.Errorf("have %d", n)}
		}
		key = append(key[:0], make([]byte, n)...)
		if _, err := io.ReadFull(r, key); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := sorter.Add(0, key, nil); err != nil {
			return err
		}
	}
}

// maxSpooled is larger than any row that a table takes.
const maxSpooled = 1 << 30

func (t *target) removeSpools() error {
	var errs []error
	for _, table := range t.ttl {
		errs = append(errs, disk.Remove(filepath.Join(t.dir, table.File)))
	}
	t.ttl = map[int]store.Table{}
	return errors.Join(errs...)
}
