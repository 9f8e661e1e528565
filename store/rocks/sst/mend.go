package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// A salvage replaces a damaged index by one made from the data blocks, which have checksums of their own and stand back to
// back from the start of the file:
//
//   - Each block that the damaged index still names counts if its checksum is right and its rows are whole.
//   - Between these, a block begins where the one before it ends. Its size is the first one with a right checksum.
//
// Where that finds no block, the rows up to the next known block are missing, which the check of the new index reports. Each
// byte is tried once, so the time is that of reading the table a few times, whatever the damage.

// errRest means that no block is found before the end of the data.
var errRest = errors.New("no block is found from here to the end of the data")

// mended is an index made from data blocks.
type mended struct {
	index []byte
	props Properties // by which to read it
	whole bool       // the blocks have no gap, up to the known end of the data
	at    blocks.Handle
	err   error // a *blocks.MendedError about the damage at this place
}

// mend returns the index that replaces a damaged one; nil if there is no need or no way.
func (r *Reader) mend() *mended {
	if !r.opts.Salvage {
		return nil
	}
	r.mendOnce.Do(func() {
		err := r.indexDamage()
		if !base.IsDamage(err) || errors.Is(err, base.ErrUnsupported) || r.info.Checksum == checksumNone {
			return
		}
		m := mender{r: r}
		m.end, m.known = r.dataEnd()
		m.hints()
		m.walk()
		if len(m.found) > 0 {
			r.mended = m.index(err)
		}
	})
	return r.mended
}

// indexDamage returns the first damage of the index and its partitions.
func (r *Reader) indexDamage() error {
	x := tableIndex{pass: func(blocks.Handle, []byte, error) bool { return true }} // faults under a right checksum are no damage
	defer x.close()
	if err := x.start(r, r.useIndex); err != nil || !x.two {
		return err
	}
	for {
		if ok, err := x.top.next(); !ok || err != nil {
			return x.topDamage(err)
		}
		if err := x.openPart(); err != nil {
			return err
		}
	}
}

// dataEnd returns the end of the data blocks: what the properties say, else where the first other block begins. It is known
// if all blocks are.
func (r *Reader) dataEnd() (end uint64, known bool) {
	end = min(r.info.Metaindex.Off, r.info.Index.Off)
	if n := r.info.DataSize; n > 0 && uint64(n) <= end {
		return uint64(n), true
	}
	err := r.eachMeta(func(_ string, value []byte) error {
		f := &base.Fields{Buf: value}
		if h := blocks.ReadHandle(f, "block"); f.Err == nil && h.Size > 0 {
			end = min(end, h.Off)
		}
		return nil
	})
	return end, err == nil && r.metaErr == nil && r.info.Version == 0
}

// dataAt is a data block with its last key.
type dataAt struct {
	blocks.Handle
	last []byte
}

// mender finds the data blocks of a table.
type mender struct {
	r     *Reader
	end   uint64
	known bool
	found []dataAt // by offset, once walk is done
}

// accept adds a block if it holds rows.
func (m *mender) accept(h blocks.Handle) bool {
	if h.Check(m.r.file.Size) != nil || handleEnd(h) > m.end {
		return false
	}
	b, err := m.r.dataBlock(h)
	if err != nil {
		return false
	}
	bl, err := blocks.Parse(b)
	if err == nil {
		_, err = bl.Count()
	}
	if err != nil {
		return false
	}
	_, last, err := m.r.ends(h, math.MaxUint64)
	if err == nil {
		m.found = append(m.found, dataAt{h, slices.Clone(last)})
	}
	return err == nil
}

// hints accepts the blocks that the damaged index names.
func (m *mender) hints() {
	top := m.hinted(m.r.info.Index)
	if m.r.info.IndexType == indexTwoLevel {
		parts := top
		top = nil
		for _, h := range parts {
			top = append(top, m.hinted(h)...)
		}
	}
	seen := map[uint64]bool{}
	for _, h := range top {
		if !seen[h.Off] {
			seen[h.Off] = m.accept(h)
		}
	}
}

// hinted returns the handles in an index block, whatever its checksum says: from each restart point up to the first
// impossible entry.
func (m *mender) hinted(h blocks.Handle) (out []blocks.Handle) {
	b, err := m.r.readBlock(h, "index", func(byte, []byte, uint32) error { return nil })
	if err != nil {
		return nil
	}
	var x indexBlock
	if x.open(b, &m.r.info.Properties) != nil {
		return nil
	}
	for i := range x.NumRestarts() {
		end := x.Restart(i + 1)
		for err := x.atRestart(i); err == nil; _, err = x.next() {
			out = append(out, x.handle)
			if x.pos >= len(x.Entries) || end >= 0 && x.pos >= end {
				break
			}
		}
	}
	return out
}

// walk finds the blocks between the accepted ones.
func (m *mender) walk() {
	byOff := func(a, b dataAt) int { return int(min(max(int64(a.Off)-int64(b.Off), -1), 1)) }
	slices.SortFunc(m.found, byOff)
	next := append(slices.Clone(m.found), dataAt{Handle: blocks.Handle{Off: m.end}})
	var at uint64
	for i := range next {
		for at < next[i].Off && (m.blockAt(m.padded(at, next[i].Off), next[i].Off) || m.blockAt(at, next[i].Off)) {
			at = handleEnd(m.found[len(m.found)-1].Handle)
		}
		at = handleEnd(next[i].Handle)
	}
	slices.SortFunc(m.found, byOff)
}

// padded returns where a block begins that follows the one that ends at off: a block begins with a zero or none, so the
// alignment is at most that byte before the first other one.
func (m *mender) padded(off, end uint64) uint64 {
	var buf [minAlign]byte
	for at := off; at < end; at += minAlign {
		b := buf[:min(minAlign, end-at)]
		if m.r.file.ReadFull(b, int64(at)) != nil {
			break
		}
		if i := bytes.IndexFunc(b, func(c rune) bool { return c != 0 }); i >= 0 {
			if next := (at + uint64(i)) &^ (minAlign - 1); next > off && touches(off, next) {
				return next
			}
			break
		}
	}
	return off
}

// codecs are the codec ids of blocks.
var codecs = []byte{codecNone, codecSnappy, codecZlib, codecBzip2, codecLZ4, codecLZ4HC, codecXpress, codecZstd, codecZstdNF}

// blockAt finds a block that starts at off and ends before end, by its checksum.
func (m *mender) blockAt(off, end uint64) bool {
	var isCodec [256]bool
	for _, c := range codecs {
		isCodec[c] = true
	}
	s := summer{kind: m.r.info.Checksum}
	buf := make([]byte, tryStep+blocks.TrailerLen)
	for from := off; from+blocks.TrailerLen <= end; from += tryStep {
		b := buf[:min(uint64(len(buf)), end-from)]
		if m.r.file.ReadFull(b, int64(from)) != nil {
			return false
		}
		done := 0
		for i := 0; i < min(tryStep, len(b)-blocks.TrailerLen+1); i++ {
			if !isCodec[b[i]] || s.kind == checksumXXH32 && from-off+uint64(i) > mostXXH32 {
				continue
			}
			s.write(b[done:i])
			done = i
			if s.with(b[i]) == binary.LittleEndian.Uint32(b[i+1:])-m.r.info.context(off) &&
				m.accept(blocks.Handle{Off: off, Size: from - off + uint64(i)}) {
				return true
			}
		}
		s.write(b[done:min(tryStep, len(b))])
	}
	return false
}

const (
	tryStep = 64 << 10
	// mostXXH32 bounds the size of blocks with a checksum that is computed from their start for each size.
	mostXXH32 = 64 << 10
)

// summer computes the checksum of growing blocks.
type summer struct {
	kind byte
	crc  uint32
	x64  *xxhash.Digest
	x3   *xxh3.Hasher
	all  []byte // for XXH32
}

func (s *summer) write(b []byte) {
	switch s.kind {
	case checksumCRC32C:
		s.crc = crc32.Update(s.crc, base.Castagnoli, b)
	case checksumXXH64:
		if s.x64 == nil {
			s.x64 = xxhash.New()
		}
		s.x64.Write(b)
	case checksumXXH3:
		if s.x3 == nil {
			s.x3 = xxh3.New()
		}
		s.x3.Write(b)
	case checksumXXH32:
		s.all = append(s.all, b[:min(len(b), max(mostXXH32+1-len(s.all), 0))]...)
	}
}

// with returns the checksum of a block that ends with a codec byte.
func (s *summer) with(codec byte) uint32 {
	switch s.kind {
	case checksumCRC32C:
		return base.MaskCRC(crc32.Update(s.crc, base.Castagnoli, []byte{codec}))
	case checksumXXH64:
		d := *s.x64
		d.Write([]byte{codec})
		return uint32(d.Sum64())
	case checksumXXH3:
		return withCodec(s.x3.Sum64(), codec)
	}
	return base.XXH32(append(s.all, codec))
}

// index builds the index of the found blocks. cause is the damage of the one that it replaces.
func (m *mender) index(cause error) *mended {
	out := &mended{props: m.r.info.Properties, whole: m.known}
	out.props.IndexType, out.props.IndexUser, out.props.IndexDelta = indexBinary, false, false
	var b blockWriter
	var end uint64
	for _, f := range m.found {
		out.whole = out.whole && touches(end, f.Off)
		b.entry(f.last, binary.AppendUvarint(binary.AppendUvarint(nil, f.Off), f.Size), true)
		end = handleEnd(f.Handle)
	}
	out.index = b.finish()
	out.whole = out.whole && end >= m.end
	e := &blocks.MendedError{Blocks: len(m.found), Whole: out.whole, Counted: m.r.info.Entries >= 0}
	if end < m.end {
		e.Unread = int64(m.end - end)
		e.Rest = fmt.Errorf("%w, %s bytes from %d on", errRest, record.Number(m.end-end), end)
	}
	out.at = m.r.info.Index
	field := "index"
	var c *record.CorruptError
	e.Err = cause
	if errors.As(cause, &c) {
		out.at.Off, field, e.Err = uint64(c.Off), c.Field, c.Err
	}
	out.err = m.r.Fail(int64(out.at.Off), field, e)
	return out
}
