package rdb

import (
	"encoding/binary"
	"io"

	"kvferry/record"
)

// Op is the kind of an item.
type Op uint8

// Kinds of items.
const (
	OpKey         Op = iota // a key with its value
	OpAux                   // Key is the name, Value the value
	OpSelectDB              // DB is the database of the following keys
	OpResizeDB              // size hints of a database
	OpSlotInfo              // hints about a cluster slot
	OpFunction              // Value is the source of a library
	OpModuleAux             // Key is the name of the module's type, Value the body
	OpOldFunction           // a library of a Redis 7.0 release candidate; Key is its name
	OpOther                 // an item without a record
	OpEOF                   // the end of the items
	OpSlotImport            // Slots are those that the server was importing; Key is the name of the import
)

// Attributes precede a key. They apply to the next key, even if other items lie between.
type Attributes struct {
	ExpireMS int64 // 0: never
	Idle     int64 // seconds since its last use, -1 unknown
	Freq     int   // -1 unknown
	// Meta: unread module metadata precedes the key.
	Meta bool
}

// noAttributes are the attributes of a key with no explicit ones.
var noAttributes = Attributes{Idle: -1, Freq: -1}

// Item is an item of a file. It is valid until the next call of Next.
type Item struct {
	Op   Op
	Type Type
	DB   uint64
	Key  []byte
	Attributes
	// Carried holds the attributes that precede earlier items.
	Carried Attributes
	Off     int64 // offset of the item, including attributes of a key
	// From and To bound the value. Value is nil if it is too large to buffer.
	From, To int64
	Value    []byte
	// End bounds the member expiries after the value. Members is nil if they are too large to buffer.
	End     int64
	Members []byte
	Keys    uint64 // number of keys of the database, of OpResizeDB
	Slots   [][2]uint64
}

// begin clears the item. It assigns field by field: a composite literal would be built elsewhere and copied, for every key.
func (it *Item) begin(db uint64, off int64, carried *Attributes) {
	it.Op, it.Type, it.DB, it.Keys = 0, 0, db, 0
	it.Key, it.Value, it.Members, it.Slots = nil, nil, nil, nil
	it.Off, it.From, it.To, it.End = off, 0, 0, 0
	it.Attributes, it.Carried = *carried, *carried
}

// HasMembers reports whether member expiries follow the value.
func (it *Item) HasMembers() bool { return it.To < it.End }

// Scanner splits a file into items. It skips values without decoding them.
type Scanner struct {
	Header Header
	in     input
	item   Item
	db     uint64
	text   []byte
	done   bool
	// carried holds attributes of the next key.
	carried Attributes
	// sectioned: OpEOF is optional.
	sectioned bool
}

// NewScanner reads the header at from, in a file that ends at end.
func NewScanner(r io.ReaderAt, from, end int64) (*Scanner, error) {
	s := &Scanner{carried: noAttributes}
	s.in.open(r, from, end)
	head := s.in.takeBytes(headerLen, "header")
	if s.in.err != nil {
		return nil, s.in.err
	}
	h, err := ParseHeader(head)
	s.Header = h
	return s, err
}

// Section returns a scanner for a range of items that starts in database db.
func Section(r io.ReaderAt, h Header, db uint64, from, end int64) *Scanner {
	s := &Scanner{Header: h, db: db, sectioned: true, carried: noAttributes}
	s.in.open(r, from, end)
	return s
}

// Carry sets the attributes of the next key that precede the section.
func (s *Scanner) Carry(a Attributes) *Scanner {
	s.carried = a
	return s
}

// Resume continues at an offset, with the state of the start of a file.
func (s *Scanner) Resume(off int64) {
	s.in.err, s.carried, s.db = nil, noAttributes, 0
	s.in.seek(off)
}

// Offset returns the offset of the next item; after Checksum, of the data after the checksum.
func (s *Scanner) Offset() int64 { return s.in.offset() }

// Key returns the key of the item at which Next failed, or nil if it failed before the key's end.
func (s *Scanner) Key() []byte { return s.item.Key }

// Checksum reads the checksum after OpEOF. Versions before 5 lack it.
func (s *Scanner) Checksum() (sum uint64, ok bool, err error) {
	if !s.Header.HasChecksum() {
		return 0, false, nil
	}
	sum = s.in.uint64("checksum")
	return sum, s.in.err == nil, s.in.err
}

// Next returns the next item. It returns io.EOF after OpEOF and at the end of a section.
func (s *Scanner) Next() (*Item, error) {
	if s.done || s.sectioned && s.in.left() == 0 {
		return nil, io.EOF
	}
	it := &s.item
	it.begin(s.db, s.in.offset(), &s.carried)
	s.text = s.text[:0]
	s.in.pin = s.in.pos
	for s.in.err == nil {
		c := s.in.byte("type")
		if c <= byte(TypeCron) || s.in.err != nil {
			s.key(Type(c))
			s.carried = noAttributes
			break
		}
		if s.opcode(c) {
			s.carried = it.Attributes
			break
		}
	}
	s.in.pin = -1
	if s.in.err != nil {
		return nil, s.in.err
	}
	return it, nil
}

// Strings returns the next items while they are strings in the window, unencoded, with no attribute but an expiry; all
// other items need Next. It sets only Key and ExpireMS of up to len(dst) records and Value of their elements, and returns
// their number. They are valid until the next call of Next or Strings.
func (s *Scanner) Strings(dst []record.Record, elems []record.Element) (n int) {
	in := &s.in
	if s.done || s.carried != noAttributes {
		return 0
	}
	for n < len(dst) {
		at, ms := in.pos, int64(0)
		if rest := in.buf[at:]; len(rest) > expiryLen && rest[0] == opExpireMS {
			ms = expires(int64(binary.LittleEndian.Uint64(rest[1:])))
			in.pos += expiryLen
		}
		if in.pos == len(in.buf) || Type(in.buf[in.pos]) != TypeString {
			in.pos = at
			break
		}
		in.pos++
		key, keyEnd, ok := in.near()
		in.pos = keyEnd
		if !ok {
			in.pos = at
			break
		}
		value, end, ok := in.near()
		in.pos = end
		if !ok {
			in.pos = at
			break
		}
		dst[n].Key, dst[n].ExpireMS, elems[n].Value = in.buf[key:keyEnd:keyEnd], ms, in.buf[value:end:end]
		n++
	}
	return n
}

// expiryLen is the length of an expiry in ms with its opcode.
const expiryLen = 9

// opcode reads the data of an opcode and reports whether it is an item of its own, and not an attribute of a key.
func (s *Scanner) opcode(c byte) bool {
	in, it := &s.in, &s.item
	switch c {
	case opExpireMS:
		it.ExpireMS = expires(int64(in.uint64("expiry")))
		return false
	case opExpire:
		it.ExpireMS = expires(1000 * int64(int32(in.uint32("expiry"))))
		return false
	case opIdle:
		it.Idle = int64(in.len("idle"))
		return false
	case opFreq:
		it.Freq = int(in.byte("frequency"))
		return false
	case opKeyMeta:
		if s.Header.Valkey {
			return s.slotImport()
		}
		it.Meta = true
		in.skipMeta()
		return false
	case opMask:
		if s.Header.isDragonfly() {
			s.mask()
			return false
		}
	case opRAMLRU, opSlotNum:
		if !s.Header.Valkey {
			in.skipLens(1)
			return false
		}
	}
	s.alone(c)
	return true
}

// expires normalizes an expiry: servers read -1 as never, and 0 as expired. The last of several expiries counts.
func expires(ms int64) int64 {
	switch ms {
	case -1:
		return 0
	case 0:
		return 1
	}
	return ms
}

// skipMeta skips module metadata: len classes, each 4 bytes, module items, 0.
func (in *input) skipMeta() {
	for n := in.count("metadata", 5); n > 0 && in.err == nil; n-- {
		in.skip(4, "metadata")
		in.skipModule()
	}
}

// slotImport reads string, len n, n × (len first slot, len last slot).
func (s *Scanner) slotImport() bool {
	s.item.Op, s.item.Slots = OpSlotImport, nil
	s.item.Key = s.copied("slot import")
	for n := s.in.count("slots", 2); n > 0 && s.in.err == nil; n-- {
		first := s.in.len("first slot")
		s.item.Slots = append(s.item.Slots, [2]uint64{first, s.in.len("last slot")})
	}
	return true
}

// alone reads an item without a key.
func (s *Scanner) alone(c byte) {
	in, it := &s.in, &s.item
	switch c {
	case opAux:
		it.Op = OpAux
		it.Key = s.copied("name")
		it.Value = s.copied("value")
		if err := s.dragonfly(it.Key, it.Value); err != nil && in.err == nil {
			in.err = err
		}
	case opSelectDB:
		it.Op = OpSelectDB
		s.db = in.len("database")
		it.DB = s.db
	case opResizeDB:
		it.Op, it.DB = OpResizeDB, s.db
		it.Keys = in.len("keys")
		in.skipLens(1)
	case opSlotInfo:
		it.Op = OpSlotInfo
		in.skipLens(3)
	case opFunction2:
		it.Op = OpFunction
		it.Value = s.copied("library")
	case opModuleAux:
		it.Op = OpModuleAux
		s.moduleAux()
	case opFunction:
		it.Op = OpOldFunction
		s.oldFunction()
	case opEOF:
		it.Op, s.done = OpEOF, true
	default:
		s.other(c)
	}
}

// other reads an item that is specific to one server.
func (s *Scanner) other(c byte) {
	s.item.Op = OpOther
	switch {
	case c == opTemplate && !s.Header.Valkey:
		s.template()
	case c >= firstSnapshot && c <= lastSnapshot && s.Header.Dragonfly:
		s.in.err = ErrSnapshot
	default:
		s.in.newer(s.in.offset()-1, "type", "%d is a type or an opcode", c)
	}
}

// oldFunction skips a library: name, engine, len 0 or 1, if 1: description; code.
func (s *Scanner) oldFunction() {
	s.item.Key = s.copied("library")
	s.in.skipString("engine")
	switch off, has := s.in.offset(), s.in.len("description"); has {
	case 0:
	case 1:
		s.in.skipString("description")
	default:
		s.in.newer(off, "description", "flag %d", has)
	}
	s.in.skipString("code")
}

// moduleAux skips len module id, len 2, len when, module items, 0.
func (s *Scanner) moduleAux() {
	in, it := &s.in, &s.item
	at := in.pos - in.pin
	it.From = in.offset()
	id := in.len("module id")
	in.skipModule()
	it.To = in.offset()
	it.Key = []byte(ModuleName(id))
	if in.pin >= 0 && in.err == nil {
		it.Value = in.buf[in.pin+at : in.pos]
	}
}

// key reads a key and skips its value.
func (s *Scanner) key(t Type) {
	in, it := &s.in, &s.item
	it.Type = t
	if in.err == nil && s.Header.shape(t).form == formNone {
		in.newer(in.offset()-1, "type", "%s", t.Name(s.Header))
		return
	}
	it.Key = s.copied("key")
	if in.err != nil {
		it.Key = nil
		return
	}
	it.From = in.offset()
	at := in.pos - in.pin
	in.skipValue(t, s.Header)
	it.To = in.offset()
	to := in.pos - in.pin
	s.members()
	it.End = in.offset()
	if in.err == nil && in.pin >= 0 {
		held := in.buf[in.pin:]
		it.Value = held[at:to:to]
		it.Members = held[to : in.pos-in.pin]
	}
}

// copied reads a string that stays valid until the next item, even if the window moves.
func (s *Scanner) copied(field string) []byte {
	start := len(s.text)
	b, text := s.in.str(field, s.text)
	if len(text) == start { // a view
		text = append(text, b...)
	}
	s.text = text
	return text[start:len(text):len(text)]
}
