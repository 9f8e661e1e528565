package lmdb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
)

// Widths in bytes.
const (
	pageHeader = 16
	nodeHeader = 8
	treeSize   = 48
	metaSize   = 24 + 2*treeSize + 16

	minPageSize = 512
	maxPageSize = 1 << 15
)

// Page flags.
const (
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageOverflow = 0x04
	pageMeta     = 0x08
	pageDirty    = 0x10 // meaningless on disk
	pageLeaf2    = 0x20 // fixed-size keys without nodes: only with MDB_DUPFIXED
	pageKinds    = pageBranch | pageLeaf | pageOverflow | pageMeta | pageLeaf2
	pageInMemory = pageDirty | 0x4000 | 0x8000 // meaningless on disk: dirty, loose, kept
)

// Node flags.
const (
	nodeBig = 0x01 // data is the number of an overflow page
	nodeSub = 0x02 // data is a tree
	nodeDup = 0x04 // data holds duplicate values
)

// Tree flags.
const (
	treeDupSort = 0x04
	treeKnown   = 0x7e // includes LMDB's own key and value orders; the order of rows is always checked
)

const (
	metaMagic   = 0xBEEFC0DE
	metaVersion = 1
	maxDepth    = 32 // of LMDB's own cursors
	noPage      = ^uint64(0)
)

var le = binary.LittleEndian

// tree holds the root and the counts of a B-tree.
type tree struct {
	pad      uint32
	flags    uint16
	depth    uint16
	branch   uint64 // pages
	leaf     uint64
	overflow uint64
	entries  uint64
	root     uint64 // noPage: empty
}

func decodeTree(b []byte) tree {
	return tree{
		pad: le.Uint32(b), flags: le.Uint16(b[4:]), depth: le.Uint16(b[6:]),
		branch: le.Uint64(b[8:]), leaf: le.Uint64(b[16:]), overflow: le.Uint64(b[24:]),
		entries: le.Uint64(b[32:]), root: le.Uint64(b[40:]),
	}
}

// meta is a meta page.
type meta struct {
	psize    int
	main     tree
	lastPage uint64
	txn      uint64
}

// decodeMeta decodes a meta page from its first bytes.
func decodeMeta(b []byte) (meta, error) {
	if len(b) < pageHeader+metaSize {
		if len(b) == 0 {
			return meta{}, corrupt(record.NoOffset, "meta page", "there is none: %w", record.ErrShort)
		}
		return meta{}, record.Short(0, "meta page", pageHeader+metaSize, len(b))
	}
	if err := checkFlags(b, pageMeta); err != nil {
		return meta{}, err
	}
	b = b[pageHeader:]
	if m := le.Uint32(b); m != metaMagic {
		return meta{}, corrupt(pageHeader, "magic", "have %#08x, want %#08x", m, uint32(metaMagic))
	}
	if v := le.Uint32(b[4:]); v != metaVersion {
		return meta{}, corrupt(pageHeader+4, "version", "have %d, this build reads %d: %w", v, metaVersion, record.ErrUnknown)
	}
	free := decodeTree(b[24:])
	m := meta{psize: int(free.pad), main: decodeTree(b[24+treeSize:])}
	b = b[24+2*treeSize:]
	m.lastPage, m.txn = le.Uint64(b), le.Uint64(b[8:])
	if m.psize < minPageSize || m.psize > maxPageSize || m.psize&(m.psize-1) != 0 {
		return meta{}, corrupt(pageHeader+24, "page size", "have %d, want a power of two from %d to %d",
			free.pad, minPageSize, maxPageSize)
	}
	return m, m.main.check(&m, pageHeader+24+treeSize)
}

// check validates the used fields of a tree record at offset at of a page.
func (t *tree) check(m *meta, at int) error {
	switch {
	case t.depth > maxDepth:
		return corrupt(at, "depth", "have %d, at most %d", t.depth, maxDepth)
	case t.root == noPage:
		return nil
	case t.depth == 0:
		return corrupt(at, "depth", "have 0 with root page %d", t.root)
	case t.root < 2 || t.root > m.lastPage:
		return corrupt(at, "root", "have page %d, the last one is %d", t.root, m.lastPage)
	}
	return nil
}

// page is a branch or leaf page with checked header and pointers.
type page struct {
	buf []byte
	n   int // nodes
}

// parsePage checks the header of a page, which must be of the kind, and its node pointers.
func parsePage(buf []byte, num uint64, kind uint16) (page, error) {
	if p := le.Uint64(buf); p != num {
		return page{}, corrupt(0, "page number", "have %d, want %d", p, num)
	}
	if err := checkFlags(buf, kind); err != nil {
		return page{}, err
	}
	lower, upper := int(le.Uint16(buf[12:])), int(le.Uint16(buf[14:]))
	if lower <= pageHeader || lower%2 != 0 || upper < lower || upper > len(buf) {
		return page{}, corrupt(12, "bounds", "have %d and %d in a page of %d", lower, upper, len(buf))
	}
	p := page{buf: buf, n: (lower - pageHeader) / 2}
	for i := range p.n {
		if at := p.pointer(i); at < upper || at > len(buf)-nodeHeader {
			return page{}, corrupt(pageHeader+2*i, "node pointer", "have %d, want %d to %d", at, upper, len(buf)-nodeHeader)
		}
	}
	return p, nil
}

var kindNames = map[uint16]string{pageBranch: "a branch", pageLeaf: "a leaf", pageOverflow: "an overflow", pageMeta: "a meta"}

// checkFlags checks the kind of a page and refuses unknown flags.
func checkFlags(buf []byte, kind uint16) error {
	switch flags := le.Uint16(buf[10:]); {
	case flags&^(pageKinds|pageInMemory) != 0:
		return record.Unknown(10, "flags", fmt.Sprintf("have %#x", flags))
	case flags&pageKinds != kind:
		return corrupt(10, "flags", "have %#x, want %s page", flags, kindNames[kind])
	}
	return nil
}

func (p *page) pointer(i int) int { return int(le.Uint16(p.buf[pageHeader+2*i:])) }

// node is a decoded node. Views are valid as long as the page.
type node struct {
	flags uint16
	key   []byte
	data  []byte // nil in branches
	size  uint64 // of the value
	child uint64 // branches: child page; leaves: overflow page with nodeBig
}

// node decodes node i of a page.
func (p *page) node(i int, leaf bool) (node, error) {
	if leaf {
		return p.leaf(i)
	}
	return p.branch(i)
}

// branch decodes node i of a branch page.
func (p *page) branch(i int) (node, error) {
	at := p.pointer(i)
	b := p.buf[at:]
	size := int(le.Uint16(b[6:]))
	if size > len(b)-nodeHeader {
		return node{}, corrupt(at, "key", "need %s bytes, have %s", record.Number(size), record.Number(len(b)-nodeHeader))
	}
	child := uint64(le.Uint16(b)) | uint64(le.Uint16(b[2:]))<<16 | uint64(le.Uint16(b[4:]))<<32
	return node{key: b[nodeHeader : nodeHeader+size], child: child}, nil
}

// leaf decodes node i of a leaf page.
func (p *page) leaf(i int) (node, error) {
	at := p.pointer(i)
	b := p.buf[at:]
	n := node{flags: le.Uint16(b[4:]), size: uint64(le.Uint16(b)) | uint64(le.Uint16(b[2:]))<<16}
	size := int(le.Uint16(b[6:]))
	b = b[nodeHeader:]
	if size > len(b) {
		return node{}, corrupt(at, "key", "need %s bytes, have %s", record.Number(size), record.Number(len(b)))
	}
	n.key, b = b[:size], b[size:]
	switch n.flags {
	case nodeBig:
		if len(b) < 8 {
			return node{}, corrupt(at, "overflow page", "need 8 bytes, have %s", record.Number(len(b)))
		}
		n.child = le.Uint64(b)
	case 0, nodeSub:
		if n.size > uint64(len(b)) {
			return node{}, corrupt(at, "data", "need %s bytes, have %s", record.Number(n.size), record.Number(len(b)))
		}
		n.data = b[:n.size]
	default:
		return node{}, record.Unknown(at, "node flags", fmt.Sprintf("have %#x", n.flags))
	}
	return n, nil
}

// corrupt returns the error of a field at an offset in a page.
func corrupt(off int, field, msg string, args ...any) *record.CorruptError {
	return &record.CorruptError{Off: int64(off), Field: field, Err: fmt.Errorf(msg, args...)}
}

// shift converts the offset in a page's error to a file offset.
func shift(err error, file, keyspace string, off int64) error {
	var c *record.CorruptError
	if !errors.As(err, &c) || c.File != "" {
		return err
	}
	c.Format, c.Keyspace, c.File = "lmdb", keyspace, file
	c.Shift(off)
	return c
}
