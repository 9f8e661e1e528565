package rocks

import (
	"bytes"
	"fmt"
	"sync"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// claim checks that a table file belongs to the MANIFEST, and is not a file of the same name and size from another copy
// of the dataset. Name and size are compared when the file is found, its unique id and column family when it is opened,
// and its bounds, the first and the last internal key, before its rows are read.
type claim struct {
	manifest.Table
	family  string // that lists the table
	compare func(a, b []byte) int

	err  error // set by opened if it is another table
	once sync.Once
	ends error // set by walked if the bounds differ
}

// maxEnd is the size of the largest block read for a single key. If the ends of a table are in larger blocks, readers
// of all rows compare the last key; see lsm.Info.Exact.
const maxEnd = 256 << 10

// opened compares the unique id, and the column family that the table was written for. An ingested table may come from
// another one. Range tombstones take effect without a walk, so a table with range tombstones is
// checked completely.
func (c *claim) opened(r *sst.Reader, i *sst.Info) {
	if id, ok := i.UniqueID(); ok && c.UniqueID != (manifest.UniqueID{}) && id != c.UniqueID {
		c.err = otherTable(r, fmt.Sprintf("the unique id %016X-%016X", c.UniqueID[0], c.UniqueID[1]),
			fmt.Sprintf("%016X-%016X", id[0], id[1]))
		return
	}
	if i.FamilyName != "" && i.HasFamily && !i.External && i.FamilyName != c.family {
		c.err = otherTable(r, "the column family "+record.Quote([]byte(c.family)), record.Quote([]byte(i.FamilyName)))
		return
	}
	if len(i.Tombstones) > 0 {
		c.err = c.walked(r)
	}
}

// otherTable is the error of a table that does not belong to the MANIFEST, by what that lists and the table has.
func otherTable(r *sst.Reader, lists, has string) error {
	return r.Fail(record.NoOffset, lsm.FieldIdentity, fmt.Errorf("the MANIFEST lists %s, but the table has %s: it is a table of "+
		"another dataset or of another time; bring back the table that belongs to the MANIFEST", lists, has))
}

// walked compares the first and the last key, once. Damage is reported by the row reader.
func (c *claim) walked(r *sst.Reader) error {
	c.once.Do(func() {
		info, err := r.Open()
		if err != nil || info.TombstoneErr != nil {
			return
		}
		first, last, err := r.Ends(maxEnd)
		if err != nil {
			return
		}
		if !c.matches(c.Smallest, first, info) {
			c.ends = otherEnd(r, "the smallest key", c.Smallest, first)
		} else if !c.matches(c.Largest, last, info) {
			c.ends = otherEnd(r, "the largest key", c.Largest, last)
		}
	})
	return c.ends
}

// matches reports whether a bound in the MANIFEST is the key found at that end of the table. A range tombstone may
// reach beyond the rows, and compactions move its ends. Ingestion assigns the sequence number and kind of a key only in
// the MANIFEST.
func (c *claim) matches(bound, key []byte, info *sst.Info) bool {
	user, _ := base.SplitKey(bound)
	for _, d := range info.Tombstones {
		if c.compare(d.Start, user) <= 0 && c.compare(user, d.End) <= 0 {
			return true
		}
	}
	if key == nil {
		return len(info.Tombstones) == 0 // not read
	}
	if info.UseFixed {
		found, _ := base.SplitKey(key)
		return bytes.Equal(user, found)
	}
	return bytes.Equal(bound, key)
}

// otherEnd is the error of a table whose first or last key differs from the MANIFEST.
func otherEnd(r *sst.Reader, what string, bound, key []byte) error {
	has := "only range tombstones elsewhere"
	if key != nil {
		has = internalKey(key)
	}
	return otherTable(r, what+" "+internalKey(bound), has)
}

// internalKey prints a key with its sequence number.
func internalKey(k []byte) string {
	user, tr := base.SplitKey(k)
	return fmt.Sprintf("%s (sequence number %d)", record.Quote(user), tr>>8)
}
