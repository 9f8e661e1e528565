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
