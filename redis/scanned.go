package redis

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// scanned is the index of an intact file, as one process passes it on to others that read the same file. It is written
// as a hash of the rest, a line feed, and JSON.
type scanned struct {
	Size   int64         `json:"size"`
	End    int64         `json:"end"`
	Rest   int64         `json:"rest"`
	Sum    uint64        `json:"crc64"`
	Header rdb.Header    `json:"header"`
	DBs    []scannedPart `json:"dbs"`
}

// scannedPart is a database, without the samples that only spans need.
type scannedPart struct {
	N        uint64                 `json:"n"`
	Items    int64                  `json:"items"`
	Sizes    [record.NumTypes]int64 `json:"sizes"`
	Types    record.TypeSet         `json:"types"`
	Sections []scannedSection       `json:"sections"`
}

// scannedSection is a section with the checksums before and after it.
type scannedSection struct {
	From    int64          `json:"from"`
	To      int64          `json:"to"`
	Carried rdb.Attributes `json:"carried"`
	Start   uint64         `json:"start"`
	End     uint64         `json:"end"`
}

// Scan returns what opening the file has found out; nil if it is damaged, has no checksum, or has what needs a look at
// the whole file.
func (s *source) Scan() []byte {
	x := s.index
	to := scanned{Size: x.size, End: x.end, Rest: x.rest, Sum: x.sum, Header: x.header}
	for _, db := range x.dbs {
		part := scannedPart{N: db.n, Items: db.items, Sizes: db.sizes, Types: db.types}
		for _, c := range db.sections {
			part.Sections = append(part.Sections, scannedSection{c.from, c.to, c.carried, c.start.sum, c.end.sum})
		}
		to.DBs = append(to.DBs, part)
	}
	data, err := json.Marshal(to)
	if err != nil {
		return nil
	}
	data = slices.Concat([]byte(record.HashBytes(data).String()), []byte("\n"), data)
	again := parseScan(data)
	plain := x.err == nil && x.damage == nil && x.skips == 0 && len(x.importing) == 0 &&
		len(x.unread)+len(x.old)+len(x.repeated) == 0
	if !plain || again.header != x.header || again.chained(s.file) != nil { // a header may have templates
		return nil
	}
	return data
}

// parseScan returns the index in data; nil if there is none, or it is damaged.
func parseScan(data []byte) *index {
	sum, body, _ := bytes.Cut(data, []byte("\n"))
	var from scanned
	if string(sum) != record.HashBytes(body).String() || json.Unmarshal(body, &from) != nil {
		return nil
	}
	x := &index{header: from.Header, end: from.End, rest: from.Rest, sum: from.Sum, size: from.Size}
	for _, part := range from.DBs {
		db := &database{n: part.N, name: strconv.FormatUint(part.N, 10), items: part.Items, sizes: part.Sizes, types: part.Types}
		for _, c := range part.Sections {
			db.sections = append(db.sections, section{c.From, c.To, c.Carried, mark{c.From, c.Start}, mark{c.To, c.End}})
		}
		x.dbs = append(x.dbs, db)
	}
	return x
}

// errScan means that a file is not the one that was scanned.
var errScan = errors.New("the file changed after the scan")

// chained returns an error unless the bytes of a file before, between and after the sections have the checksums of the
// index, up to that of the whole file at its end. Readers compare those of sections: none of them relies on bytes that
// only an earlier process has read.
func (x *index) chained(f *disk.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != x.size || x.rest != x.size || x.sum == 0 || len(x.dbs) == 0 {
		return errScan
	}
	var sections []section
	for _, db := range x.dbs {
		sections = append(sections, db.sections...)
	}
	slices.SortFunc(sections, func(a, b section) int { return cmp.Compare(a.from, b.from) })
	at := mark{}
	for _, next := range append(sections, section{from: x.end, to: x.end, start: mark{x.end, x.sum}}) {
		if next.from < at.at || next.to < next.from {
			return errScan
		}
		sum, err := resume(f, at, next.start).before(next.from)
		if err == nil && sum != next.start.sum {
			err = errScan
		}
		if err != nil {
			return err
		}
		at = next.end
	}
	var end [8]byte
	if _, _, err = disk.ReadAt(f, end[:], x.end); err == nil && binary.LittleEndian.Uint64(end[:]) != x.sum {
		err = errScan
	}
	return err
}
