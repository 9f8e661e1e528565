package keydbflash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keyslot"
	"kvferry/record"
)

const (
	slotLen = 2
	whenLen = 8
)

// internal begins the keys of the server's own rows. A longer user key with this prefix is stored without a slot.
const internal = "\x00\x04\x03\x00\x05\x02\x04"

// The server's own rows. The NUL that ends a literal is part of the key.
const (
	rowCount      = internal + "__keydb__count\x01\x00"
	rowVersion    = internal + "__keydb__version\x01\x00"
	rowMetadata   = internal + "__keydb__metadata\x01\x00"
	rowLastExpire = internal + "__keydb__last_expire_time\x00"
)

// metadataID is the value of the metadata row.
const metadataID = "c299fde0-6d42-4ec4-b939-34f680ffe39f"

// dialect is the differences between versions of KeyDB.
type dialect struct {
	slots bool // keys have a slot
	image int  // bytes of the image of a string's object
}

var (
	newDialect = dialect{slots: true, image: 24} // 6.3.4 and later
	oldDialect = dialect{image: 16}
)

// dialectOf returns the dialect of the version in a version row, such as "6.3.4\x00". Builds between releases write
// 0.0.0, which KeyDB treats as its own version.
func dialectOf(value []byte) (dialect, error) {
	text, ok := strings.CutSuffix(string(value), "\x00")
	var v [3]int
	parts := strings.Split(text, ".")
	for i := range v {
		if !ok || len(parts) != len(v) {
			ok = false
			break
		}
		n, err := strconv.Atoi(parts[i])
		v[i], ok = n, err == nil && n >= 0
	}
	switch {
	case !ok:
		return newDialect, &record.CorruptError{Field: "version", Err: fmt.Errorf("%s is no version", record.Quote(value))}
	case v == [3]int{}:
		return newDialect, nil
	case v[0] < 6 || v[0] == 6 && (v[1] < 3 || v[1] == 3 && v[2] < 4):
		return oldDialect, nil
	}
	return newDialect, nil
}

// isInternal reports whether the server stores a key without a slot.
func isInternal(key []byte) bool {
	return len(key) > len(internal) && bytes.HasPrefix(key, []byte(internal))
}

// appendKey appends the key of a row.
//
//	+-----------+----------+
//	| slot (2B) | user key |
//	+-----------+----------+
//
// The slot is little-endian: the key's cluster slot, even if the server is not in a cluster.
func (d dialect) appendKey(dst, key []byte) []byte {
	if d.slots && !isInternal(key) {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(keyslot.Of(key)))
	}
	return append(dst, key...)
}

// decodeKey returns the user key of a row's key.
func (d dialect) decodeKey(raw []byte) ([]byte, error) {
	if !d.slots {
		return raw, nil
	}
	if len(raw) < slotLen {
		return nil, record.Short(0, "slot", slotLen, len(raw))
	}
	user := raw[slotLen:]
	slot, want := int(binary.LittleEndian.Uint16(raw)), keyslot.Of(user)
	switch {
	case slot == want:
		return user, nil
	case isInternal(raw):
		return raw, nil
	}
	return user, &dataset.KindError{Kind: FindSlot,
		Err: fmt.Errorf("slot %d, but the key has slot %d, where the server looks for it", slot, want)}
}

// sampled returns the user key of a raw key; both may be truncated.
func (d dialect) sampled(raw []byte) []byte {
	user, _ := d.spanKey(raw)
	return user
}

// spanKey returns the user key that decides a row's span. Rows without a slot are mixed with the rows of one slot.
func (d dialect) spanKey(raw []byte) (user []byte, leap bool) {
	if !d.slots || isInternal(raw) {
		return raw, false
	}
	return raw[min(slotLen, len(raw)):], !bytes.HasPrefix(raw, []byte(internal[:slotLen]))
}

// own reports whether a row is the server's own, and an error in its value.
func own(raw, value []byte) (bool, error) {
	if !isInternal(raw) {
		return false, nil
	}
	switch string(raw) {
	case rowCount:
		return true, record.Exact(value, 0, "count", 8)
	case rowVersion:
		_, err := dialectOf(value)
		return true, err
	case rowMetadata:
		if string(value) != metadataID {
			return true, record.Unknown(0, "metadata", record.Quote(value))
		}
		return true, nil
	case rowLastExpire:
		return true, record.Unknown(0, "value", "a time of the last expiry")
	}
	return false, nil
}

// metadata lists the rows of default that have a slot, with the lengths of their values; 0 is any length.
var metadata = map[string]int{"repl-id": 41, "repl-offset": 8, "repl-stream-db": 4, "repl-masters": 0}

// swapped is the name prefix of the rows that map a family to a database.
const swapped = "db-"

// metadataRow checks a row of default and returns its name.
func (d dialect) metadataRow(raw, value []byte) (name string, err error) {
	if is, err := own(raw, value); is {
		return string(raw[len(internal):]), err
	}
	key, err := d.decodeKey(raw)
	if err != nil {
		return "", err
	}
	name = string(key)
	n, ok := metadata[name]
	if db, is := strings.CutPrefix(name, swapped); is && dataset.IsNumber(db) {
		n, ok = 4, true
	}
	switch {
	case !ok:
		return name, record.Unknown(0, "name", record.Quote(key))
	case n == 0 && len(value) > 0 && value[len(value)-1] != ';': // id:offset:host:port; for each
		return name, record.Unknown(len(value)-1, name, record.Quote(value))
	case n == 0:
		return name, nil
	}
	return name, record.Exact(value, 0, name, n)
}

var errIndex = errors.New("the value is not the key that follows the time")

// decodeIndex decodes a row of the index.
//
//	+-----------+----------+
//	| when (8B) | user key | -> user key
//	+-----------+----------+
//
// when is the earliest expiry of the key and its members: int64, big-endian, ms since 1970.
func decodeIndex(raw, value []byte) (when int64, key []byte, err error) {
	if len(raw) < whenLen {
		return 0, nil, record.Short(0, "time", whenLen, len(raw))
	}
	when, key = int64(binary.BigEndian.Uint64(raw)), raw[whenLen:]
	if !bytes.Equal(key, value) {
		return when, key, errIndex
	}
	return when, key, nil
}

// appendIndex appends the key of a row of the index.
func appendIndex(dst []byte, when int64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(when)), key...)
}
