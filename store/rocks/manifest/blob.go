package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// Blob is a blob file listed in the MANIFEST.
//
//	addition (tag 400)  number, count, bytes: varints; name and value of a checksum: length-prefixed; fields
//	garbage (tag 401)   number, count, bytes: varints; fields
//
// Fields are coded like the custom fields of a table and end with 0; no field is defined yet. Garbage adds up.
type Blob struct {
	Number       uint64
	Count, Bytes uint64 // of its records
	Checksum     Checksum
	// Of the records that no table needs any more.
	GarbageCount, GarbageBytes uint64
	Err                        error // set if the entry makes the file unreadable: base.ErrUnsupported
}

// blobEnd ends the fields of a blob file.
const blobEnd = 0

// blobFile decodes the addition of a blob file, or the garbage in one.
func (e *Edit) blobFile(f *base.Fields, addition bool) Blob {
	b := Blob{Number: f.Uvarint("blob file number")}
	count, size := f.Uvarint("number of blobs"), f.Uvarint("bytes of blobs")
	if addition {
		b.Count, b.Bytes = count, size
		name := f.Prefixed("checksum name")
		b.Checksum = checksum(name, f.Prefixed("checksum"))
	} else {
		b.GarbageCount, b.GarbageBytes = count, size
	}
	for f.Err == nil {
		tag := f.Uvarint32("field of a blob file")
		if tag == blobEnd {
			break
		}
		f.Prefixed("field of a blob file")
		if tag&FileNotIgnorable != 0 {
			b.Err = base.Unsupported("the blob file has custom field %d", tag)
		} else {
			e.pass(record.Note, "unknown field %d of a blob file; engines also ignore it if they do not know it", tag)
		}
	}
	return b
}

// addBlobs adds blob files, and then the garbage in them.
func (f *Family) addBlobs(added, garbage []Blob) error {
	for _, b := range added {
		if f.blobs[b.Number] != nil {
			return fmt.Errorf("blob file %d is added twice", b.Number)
		}
		f.blobs[b.Number] = &b
	}
	for _, g := range garbage {
		b := f.blobs[g.Number]
		if b == nil {
			return fmt.Errorf("garbage in blob file %d, which is unknown", g.Number)
		}
		b.Err = cmp.Or(b.Err, g.Err)
		b.GarbageCount += g.GarbageCount
		b.GarbageBytes += g.GarbageBytes
		if b.GarbageCount > b.Count || b.GarbageBytes > b.Bytes {
			return fmt.Errorf("blob file %d: %w", g.Number, errGarbage)
		}
	}
	return nil
}

var errGarbage = errors.New("more garbage than blobs")

// Blobs returns the blob files that are part of the database, by number. An engine removes a file without an edit if
// all tables refer to later files as their oldest, or if it only holds garbage and is not the oldest of any table.
func (f *Family) Blobs() []Blob {
	linked := map[uint64]bool{}
	oldest := uint64(math.MaxUint64)
	for _, t := range f.Tables {
		if t.OldestBlob != 0 {
			linked[t.OldestBlob] = true
			oldest = min(oldest, t.OldestBlob)
		}
	}
	var out []Blob
	for _, b := range f.blobs {
		if f.allBlobs || b.Number >= oldest && (linked[b.Number] || b.GarbageCount < b.Count) {
			out = append(out, *b)
		}
	}
	slices.SortFunc(out, func(a, b Blob) int { return cmp.Compare(a.Number, b.Number) })
	return out
}
