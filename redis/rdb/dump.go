package rdb

import "kvferry/record"

// Dump is a DUMP payload without its footer.
type Dump struct {
	Type   Type
	Header Header // header of a file of the same server
	Value  []byte
	Off    int64 // offset of the value in the payload
	Meta   bool  // unread module metadata precedes the type
}

// firstValkey is the first RDB version numbered by Valkey.
const firstValkey = 80

// PayloadHeader derives a header from the version in a payload's footer.
func PayloadHeader(version uint16) Header {
	return Header{Version: int(version), Valkey: version >= firstValkey}
}

// OpenDump parses a payload without its footer; version comes from the footer:
//
//	[F3 metadata] type | value | [FA name value]…
//
// The version identifies the server, as the magic of a file does. All versions are accepted. After an error in the
// value, Type and Off are still set; Off is 0 if the payload ends before them.
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
		off := in.offset()
		if in.byte("type") != opAux { // KeyDB appends mvcc-tstamp
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
