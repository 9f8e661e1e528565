package keydbflash

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"kvferry/redis/rdb/crc64"
	"strconv"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// Widths of the head of a value.
const (
	countLen  = 4
	lenLen    = 4
	expiryLen = lenLen + whenLen // of an expiry without its subkey
)

// value is a row's value, as views.
//
//	+--------+--------------------------------------+--------+
//	| n (4B) | n × len (4B) | subkey | when (8B)     | object |
//	+--------+--------------------------------------+--------+
//
// All little-endian. when is int64, ms since 1970, and does not descend. An empty subkey is the key itself; others are
// members of a set, hash or sorted set, which may be gone, or the name of a cron job for its next run.
type value struct {
	expiries []byte // checked
	object   []byte
	off      int // of the object
}

var (
	errOrder = errors.New("it is less than the previous one")
	errPast  = errors.New("it is before 1970")
)

// decodeValue splits a value and checks its expiries.
func decodeValue(b []byte) (v value, err error) {
	if len(b) < countLen {
		return v, record.Short(0, "number of expiries", countLen, len(b))
	}
	n, rest := binary.LittleEndian.Uint32(b), b[countLen:]
	last := int64(0)
	for ; n > 0; n-- {
		off := len(b) - len(rest)
		if len(rest) < lenLen {
			return v, record.Short(off, "length of a member", lenLen, len(rest))
		}
		size := uint64(binary.LittleEndian.Uint32(rest))
		if uint64(len(rest)) < expiryLen+size {
			return v, record.Short(off, "expiry", int(expiryLen+size), len(rest))
		}
		var when int64
		_, when, rest = nextExpiry(rest)
		wrong := error(nil)
		switch {
		case when < 0:
			wrong = errPast
		case when < last:
			wrong = errOrder
		}
		last = when
		if wrong != nil {
			return v, &record.CorruptError{Off: int64(off), Field: "expiry", Err: wrong}
		}
	}
	v.off = len(b) - len(rest)
	v.expiries, v.object = b[countLen:v.off], rest
	if len(rest) == 0 {
		return v, record.Short(v.off, "object", 1, 0)
	}
	return v, nil
}

// nextExpiry splits off the first expiry.
func nextExpiry(b []byte) (subkey []byte, when int64, rest []byte) {
	n := int(binary.LittleEndian.Uint32(b))
	subkey, b = b[lenLen:lenLen+n], b[lenLen+n:]
	return subkey, int64(binary.LittleEndian.Uint64(b)), b[whenLen:]
}

// expiry returns the expiry of the key, like KeyDB the last of several, and the first of all expiries; 0 is never.
func (v *value) expiry() (key, first int64) {
	for rest := v.expiries; len(rest) > 0; {
		var subkey []byte
		var when int64
		subkey, when, rest = nextExpiry(rest)
		when = max(when, 1) // 0 is never
		first = cmp.Or(first, when)
		if len(subkey) == 0 {
			key = when
		}
	}
	return key, first
}

// typ returns the type of the object, or an error if KeyDB does not read it.
func (v *value) typ() (rdb.Type, error) {
	t := rdb.Type(v.object[0])
	if t == rdb.TypeCron || t <= rdb.TypeStream && t.RecordType(rdb.Header{}) != 0 {
		return t, nil
	}
	return t, record.Unknown(v.off, "type", strconv.Itoa(int(t)))
}

// The image of an object, and its encodings of strings.
const (
	mvccLen = 8
	imageAt = 1 + mvccLen

	typeMask      = 0x0f
	encodingRaw   = 0
	encodingInt   = 1
	encodingEmbed = 8
)

// decodeString decodes a string object.
//
//	+--------+-----------+---------------------+-------+
//	| 0 (1B) | mvcc (8B) | image (24B, or 16B) | bytes |
//	+--------+-----------+---------------------+-------+
//
// image is a redisObject of the server's memory: type and encoding (4 bits each), lru (24 bits), reference count (4B),
// expiry (8B, in images of 24 bytes), pointer (8B). All little-endian. A string of encoding 1 has no bytes: it is an
// int64 in place of the pointer. The text is a view, or the number appended to dst.
func (d dialect) decodeString(dst []byte, v *value) ([]byte, error) {
	head := imageAt + d.image
	if len(v.object) < head {
		return nil, record.Short(v.off, "string", head, len(v.object))
	}
	form, text := v.object[imageAt], v.object[head:]
	switch encoding := form >> 4; {
	case form&typeMask != 0:
		return nil, record.Unknown(v.off+imageAt, "type of the image", strconv.Itoa(int(form&typeMask)))
	case encoding == encodingRaw, encoding == encodingEmbed:
		return text, nil
	case encoding != encodingInt:
		return nil, record.Unknown(v.off+imageAt, "encoding", strconv.Itoa(int(encoding)))
	case len(text) > 0:
		return nil, &record.CorruptError{Off: int64(v.off + head), Field: "number", Err: record.ErrTrailing}
	}
	return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(v.object[head-8:])), 10), nil
}

// checkPayload checks the checksum of an object that is a payload of DUMP.
//
//	+-----------+-----------+------------------------------+--------------+------------+
//	| type (1B) | RDB value | FA "mvcc-tstamp" number      | version (2B) | CRC64 (8B) |
//	+-----------+-----------+------------------------------+--------------+------------+
func (v *value) checkPayload() error {
	_, _, err := crc64.CutFooter(v.object, false)
	return at(v.off, err)
}

// payload finds the RDB value in a payload.
func (v *value) payload() (rdb.Dump, error) {
	body, version, err := crc64.CutFooter(v.object, false)
	if err != nil {
		return rdb.Dump{}, err
	}
	d, err := rdb.OpenDump(body, version)
	return d, at(v.off, err)
}

// at adds the object's offset in the value to the offset of an error.
func at(off int, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) && c.Off >= 0 {
		c.Off += int64(off)
		return err
	}
	if err != nil {
		err = fmt.Errorf("payload: %w", err)
	}
	return err
}
