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

// claim is what the MANIFEST says about a table: that the file is the one it means, and not another one of the same name
// and size, as when files of several copies of a dataset were mixed. Name and size are compared when the file is found,
// its identity when it is opened, and its bounds, the first and the last internal key, before its rows are read.
type claim struct {
	manifest.Table
	compare func(a, b []byte) int

	err  error // the table is another one; known once it was opened
	once sync.Once
	ends error // the same of its ends; known once it was walked
}

// maxEnd is the size of the largest block that is read for the sake of one key. Where ends are in larger ones, readers of
// all rows compare the last key; see lsm.Info.Exact.
const maxEnd = 256 << 10

// opened compares what stands around the rows. Range tombstones act without a walk, so that a table with some is looked
// at whole.
func (c *claim) opened(r *sst.Reader, i *sst.Info) {
	if id, ok := i.UniqueID(); ok && c.UniqueID != (manifest.UniqueID{}) && id != c.UniqueID {
		c.err = r.Fail(record.NoOffset, lsm.FieldIdentity, otherTable("the unique id %016X-%016X", "%016X-%016X",
			[]any{c.UniqueID[0], c.UniqueID[1]}, []any{id[0], id[1]}))
		return
	}
	if len(i.Tombstones) > 0 {
		c.err = c.walked(r)
	}
}

// otherTable says that a table is not the one that the MANIFEST names.
func otherTable(what, value string, said, found []any) error {
	return fmt.Errorf("the MANIFEST says "+what+", the table has "+value+": it is not the table that the MANIFEST names, but one of another "+
		"dataset or of another time; bring back the one that belongs to the MANIFEST", append(said, found...)...)
}

// walked compares the first and the last key, once. Whoever reads the rows says what is damaged.
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
			c.ends = c.otherEnd(r, "the smallest key", c.Smallest, first)
		} else if !c.matches(c.Largest, last, info) {
			c.ends = c.otherEnd(r, "the largest key", c.Largest, last)
		}
	})
	return c.ends
}

// matches reports whether a bound in the MANIFEST is the key found at that end of the table. A range tombstone may reach
// beyond the rows, and compactions move its ends. Ingestion gives keys a sequence number and a kind in the MANIFEST alone.
func (c *claim) matches(bound, key []byte, info *sst.Info) bool {
	user, _ := base.SplitKey(bound)
	for _, d := range info.Tombstones {
		if c.compare(d.Start, user) <= 0 && c.compare(user, d.End) <= 0 {
			return true
		}
	}
	if key == nil {
		return len(info.Tombstones) == 0 // not looked at
	}
	if info.UseFixed {
		found, _ := base.SplitKey(key)
		return bytes.Equal(user, found)
	}
	return bytes.Equal(bound, key)
}

// otherEnd is the error of a table with another key at one of its ends.
func (c *claim) otherEnd(r *sst.Reader, what string, bound, key []byte) error {
	if key == nil {
		return r.Fail(record.NoOffset, lsm.FieldIdentity, otherTable(what+" %s", "only range tombstones elsewhere", []any{internalKey(bound)}, nil))
	}
	return r.Fail(record.NoOffset, lsm.FieldIdentity, otherTable(what+" %s", "%s", []any{internalKey(bound)}, []any{internalKey(key)}))
}

// internalKey prints a key with its sequence number.
func internalKey(k []byte) string {
	user, tr := base.SplitKey(k)
	return fmt.Sprintf("%s (sequence number %d)", record.Quote(user), tr>>8)
}
