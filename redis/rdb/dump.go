package rdb

import "kvferry/record"

// Dump is a payload of DUMP without its footer.
type Dump struct {
	Type   Type
	Header Header // what a file of the server would begin with
	Value  []byte
	Off    int64 // of the value in the payload
	Meta   bool  // metadata of modules stands before the type, which is not read
}

// firstValkey is the first version that Valkey counts on its own.
const firstValkey = 80

// PayloadHeader returns what the version in the footer of a payload tells of the server that made it.
func PayloadHeader(version uint16) Header {
	return Header{Version: int(version), Valkey: version >= firstValkey}
}

// FooterLen is the length of what ends a payload: a version u16 LE, and the checksum u64 LE of all before it.
const FooterLen = 10

// CutFooter returns what a payload of DUMP or FUNCTION DUMP holds without its footer, and the version in that. A checksum of 0 is
// none, which unsummed allows: payloads in the replication stream of Redis 8.10 may have it.
func CutFooter(payload []byte, unsummed bool) (body []byte, version uint16, err error) {
	if len(payload) < FooterLen {
		return nil, 0, record.Short(0, "payload", FooterLen, len(payload))
	}
	end := len(payload) - 8
	if sum := binary.LittleEndian.Uint64(payload[end:]); sum != crc64.Update(0, payload[:end]) && (sum != 0 || !unsummed) {
		return nil, 0, &record.CorruptError{Off: int64(end), Field: "checksum", Err: errChecksum}
	}
	return payload[:end-2], binary.LittleEndian.Uint16(payload[end-2:]), nil
}

var errChecksum = errors.New("is wrong")

// OpenDump finds the value in a payload whose footer, which has a version, is taken off:
//
//	[F3 metadata] type | value | [FA name value]…
//
// The version tells servers apart, as the magic of a file does. It refuses nothing. Of a payload that is cut in its value, or
// whose value is not known, the type and the offset are right; the offset is 0 when it ends before them.
func OpenDump(body []byte, version uint16) (Dump, error) {
	d := Dump{Header: PayloadHeader(version)}
	var in input
	in.reset(body, 0)
	t := in.byte("type")
	if t == opKeyMeta && !d.Header.Valkey {
		d.Meta = true
		in.skipMeta()
		t = in.byte("type")
	}
	if in.err != nil {
		return d, in.err
	}
	d.Type, d.Off = Type(t), in.offset()
	in.skipValue(d.Type, d.Header)
	end := in.pos
	for in.err == nil && in.left() > 0 {
		if off := in.offset(); in.byte("type") != opAux { // KeyDB ends a payload with mvcc-tstamp
			in.newer(off, "payload", "%d %s", in.end-off, record.ErrTrailing)
		}
		in.skipString("name")
		in.skipString("value")
	}
	if in.err != nil {
		return d, in.err
	}
	d.Value = body[d.Off:end]
	return d, nil
}
