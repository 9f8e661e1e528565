package lsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"

	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// spool is a finished spool, as a Source. Its index stays in memory; every index entry is a restart.
type spool struct {
	file    *files.File
	windows *files.Windows
	cmp     *store.Comparer
	index   blocks.Block
}

// Open returns empty metadata, as spools have no footer or properties.
func (s *spool) Open() (*Info, error) { return &Info{}, nil }

// KeyBefore is unused, because it serves reports of damage.
func (s *spool) KeyBefore([]byte) []byte { return nil }

// Walk starts before the first block.
func (s *spool) Walk(reuse blocks.Walk, _ func(blocks.Handle, []byte, error) bool) (blocks.Walk, error) {
	w, _ := reuse.(*spoolWalk)
	if w == nil {
		w = &spoolWalk{win: files.Window{All: s.windows}}
	}
	w.s, w.at = s, -1
	w.win.Open(s.file)
	return w, nil
}

// spoolWalk iterates over the blocks of a spool.
type spoolWalk struct {
	s      *spool
	win    files.Window
	at     int // entry of the index
	sep    []byte
	handle blocks.Handle
}

// Next moves to the next block.
func (w *spoolWalk) Next() (bool, error) { return w.move(w.at + 1), nil }

// Seek moves to the first block whose last key is not before key.
func (w *spoolWalk) Seek(key []byte) (bool, error) {
	n := sort.Search(w.s.index.NumRestarts(), func(i int) bool {
		sep, _ := w.s.entry(i)
		return w.s.cmp.Compare(sep, key) >= 0
	})
	return w.move(n), nil
}

// SkipTo advances by at least one block, to the first that ends at or after off.
func (w *spoolWalk) SkipTo(off uint64) (bool, error) {
	next, all := w.at+1, w.s.index.NumRestarts()
	n := next + sort.Search(max(0, all-next), func(i int) bool {
		_, h := w.s.entry(next + i)
		return h.Off+h.Size >= off
	})
	if n >= all && all > 0 {
		w.move(all - 1)
	}
	return w.move(n), nil
}

// move moves to block i.
func (w *spoolWalk) move(i int) bool {
	if w.at = min(i, w.s.index.NumRestarts()); w.at != i || i == w.s.index.NumRestarts() {
		return false
	}
	w.sep, w.handle = w.s.entry(i)
	return true
}

// entry decodes index entry i: the user key of a block's last entry, and the block's handle.
func (s *spool) entry(i int) (sep []byte, h blocks.Handle) {
	d := s.index.Entries
	_, klen, vlen, p := blocks.EntryHeader(d, s.index.Restart(i))
	f := base.Fields{Buf: d[p+klen : p+klen+vlen]}
	sep, _ = base.SplitKey(d[p : p+klen])
	return sep, blocks.ReadHandle(&f, "handle")
}

// Separator returns the last key of the block.
func (w *spoolWalk) Separator() []byte { return w.sep }

// Handle returns the block's handle.
func (w *spoolWalk) Handle() blocks.Handle { return w.handle }

// Load reads the block.
func (w *spoolWalk) Load() (blocks.Block, error) {
	raw, err := w.win.Read(int64(w.handle.Off), int(w.handle.Size)+blocks.TrailerLen)
	if err != nil {
		return blocks.Block{}, err
	}
	b := raw[:w.handle.Size+1]
	stored := binary.LittleEndian.Uint32(raw[len(b):])
	if sum := base.MaskCRC(crc32.Checksum(b, base.Castagnoli)); sum != stored {
		return blocks.Block{}, fmt.Errorf("the temporary file was changed or the disk is failing: %w", base.ErrChecksum)
	}
	return blocks.Parse(b[:w.handle.Size])
}

// Counted is true, because a spool needs no audit.
func (w *spoolWalk) Counted() bool { return true }

// Count is unused.
func (w *spoolWalk) Count(*blocks.Counts, error) error { return nil }

// GiveBack frees the memory of the block.
func (w *spoolWalk) GiveBack() { w.win.GiveBack() }

// Close ends the walk.
func (w *spoolWalk) Close() { w.win.Close() }
