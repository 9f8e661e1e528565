package extsort

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"kvferry/internal/sys/disk"
)

// Hash is a hash of 64 or of 128 bits.
type Hash interface{ [1]uint64 | [2]uint64 }

func compareHashes[H Hash](a, b H) int {
	if a[0] != b[0] {
		return cmp.Compare(a[0], b[0])
	}
	return cmp.Compare(a[len(a)-1], b[len(b)-1])
}

// hashLen returns the size of a hash in bytes.
func hashLen[H Hash]() int64 {
	var h H
	return 8 * int64(len(h))
}

// Duplicates collects hashes in buckets by their highest bits, which must be evenly distributed. If they exceed the
// memory limit, it writes them to a temporary file. Each run there holds all buckets in order.
type Duplicates[H Hash] struct {
	most    int64 // maximum number of hashes in memory
	tempDir string

	n       int64 // hashes in memory
	buckets [buckets]*chunk[H]
	free    *chunk[H]
	table   []H // hash set of the hashes of one bucket
	again   []H // its duplicates

	file *disk.File
	runs []hashRun
	size int64 // of the file
	buf  []byte
}

const (
	bucketBits = 8
	buckets    = 1 << bucketBits
	// chunkLen is the number of hashes per chunk.
	chunkLen = 62
)

// chunk holds hashes of a bucket.
type chunk[H Hash] struct {
	next   *chunk[H]
	n      int
	hashes [chunkLen]H
}

// hashRun holds the file offsets of the buckets of a run. Bucket b is from run[b] to run[b+1].
type hashRun [buckets + 1]int64

// defaultMemory is the memory limit if the caller sets none.

// NewDuplicates returns a Finder with a memory limit in bytes. tempDir is the directory of its temporary file; "" means the
// system's.
func NewDuplicates[H Hash](memory int64, tempDir string) *Duplicates[H] {
	if memory <= 0 {
		memory = defaultMemory
	}
	return &Duplicates[H]{most: max(memory/hashLen[H]()-buckets*chunkLen/2, buckets), tempDir: tempDir}
}

// Add adds a hash.
func (f *Duplicates[H]) Add(h H) error {
	b := int(h[0] >> (64 - bucketBits))
	if c := f.buckets[b]; (c == nil || c.n == chunkLen) && f.n >= f.most {
		if err := f.spill(); err != nil {
			return err
		}
	}
	f.push(b, h)
	return nil
}

// push adds a hash to its bucket.
func (f *Duplicates[H]) push(b int, h H) {
	c := f.buckets[b]
	if c == nil || c.n == chunkLen {
		c = f.chunk(c)
		f.buckets[b] = c
	}
	c.hashes[c.n] = h
	c.n++
	f.n++
}

// chunk returns a free chunk, linked before next.
func (f *Duplicates[H]) chunk(next *chunk[H]) *chunk[H] {
	c := f.free
	if c == nil {
		c = new(chunk[H])
	} else {
		f.free = c.next
	}
	c.n, c.next = 0, next
	return c
}

// Close removes the file.
func (f *Duplicates[H]) Close() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	*f = Duplicates[H]{most: f.most, tempDir: f.tempDir}
	return err
}

// Each calls do with each hash that was added more than once, in ascending order, and the number of additional
// occurrences. It closes the finder.
func (f *Duplicates[H]) Each(do func(h H, more int64) error) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	for b := range buckets {
		if err := f.load(b); err != nil {
			return err
		}
		f.find(b)
		if err := f.tell(do); err != nil {
			return err
		}
	}
	return nil
}

// find collects the hashes of a bucket that equal an earlier one. table is an open-addressing hash set of the hashes
// seen so far.
func (f *Duplicates[H]) find(b int) {
	n := 0
	for c := f.buckets[b]; c != nil; c = c.next {
		n += c.n
	}
	slots := 1 << bits.Len(uint(2*n))
	f.table = slices.Grow(f.table[:0], slots)[:slots]
	clear(f.table)
	f.again = f.again[:0]
	var zero H
	zeros := 0
	mask := uint64(slots - 1)
	for c := f.buckets[b]; c != nil; c = c.next {
		for i := range c.hashes[:c.n] {
			h := c.hashes[i]
			if h == zero {
				if zeros++; zeros > 1 {
					f.again = append(f.again, h)
				}
				continue
			}
			for k := h[0] + h[len(h)-1]>>1; ; k++ {
				s := &f.table[k&mask]
				if *s == zero {
					*s = h
					break
				}
				if *s == h {
					f.again = append(f.again, h)
					break
				}
			}
		}
	}
	slices.SortFunc(f.again, compareHashes[H])
}

// tell calls do with the duplicates of the current bucket.
func (f *Duplicates[H]) tell(do func(H, int64) error) error {
	for from := 0; from < len(f.again); {
		to := from + 1
		for to < len(f.again) && f.again[to] == f.again[from] {
			to++
		}
		if err := do(f.again[from], int64(to-from)); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// release frees the chunks of a bucket.
func (f *Duplicates[H]) release(b int) {
	for c := f.buckets[b]; c != nil; {
		next := c.next
		f.n -= int64(c.n)
		c.next, f.free = f.free, c
		c = next
	}
	f.buckets[b] = nil
}

// spill writes all buckets as a run.
func (f *Duplicates[H]) spill() (err error) {
	if f.file == nil {
		if f.file, err = disk.Temp(f.tempDir, "hashes"); err != nil {
			return err
		}
	}
	r := hashRun{f.size}
	f.buf = f.buf[:0]
	for b := range buckets {
		for c := f.buckets[b]; c != nil; c = c.next {
			for i := range c.hashes[:c.n] {
				for k := range len(c.hashes[i]) {
					f.buf = binary.LittleEndian.AppendUint64(f.buf, c.hashes[i][k])
				}
			}
			if len(f.buf) >= 64<<10 {
				if err := f.write(); err != nil {
					return err
				}
			}
		}
		f.release(b)
		r[b+1] = f.size + int64(len(f.buf))
	}
	f.runs = append(f.runs, r)
	return f.write()
}

func (f *Duplicates[H]) write() error {
	n, err := f.file.Write(f.buf)
	f.size += int64(n)
	f.buf = f.buf[:0]
	return err
}

// load adds the hashes of a bucket in all runs to those in memory.
func (f *Duplicates[H]) load(b int) error {
	if b > 0 {
		f.release(b - 1)
	}
	for i := range f.runs {
		from, to := f.runs[i][b], f.runs[i][b+1]
		f.buf = slices.Grow(f.buf[:0], int(to-from))[:to-from]
		if _, _, err := disk.ReadAt(f.file, f.buf, from); err != nil {
			return err
		}
		for at := int64(0); at < to-from; at += hashLen[H]() {
			var h H
			for k := range len(h) {
				h[k] = binary.LittleEndian.Uint64(f.buf[at+8*int64(k):])
			}
			f.push(b, h)
		}
	}
	return nil
}
