package keys

import (
	"encoding/binary"
	"errors"

	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/rdb/encode"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// dumpVersion is the version of payloads. Redis 5.0 and newer and Valkey load it. Hashes whose fields expire need a
// newer one.
var dumpVersion, fieldVersion = rdb.DefaultVersion, rdb.Version{Number: 12}

// payload receives the parts of a DUMP payload: first to count them, then to send them.
type payload struct {
	n     int64 // bytes so far, without the count
	count []byte
	began bool
	w     *resp.Writer // nil: only count
	sum   uint64
}

func (p *payload) put(b []byte) {
	p.n += int64(len(b))
	if p.w != nil {
		p.sum = crc64.Update(p.sum, b)
		p.w.Piece(b)
	}
}

// spill takes parts of a large value: what precedes the count, then the rest.
func (p *payload) spill(t rdb.Type, part []byte) error {
	if p.began {
		p.put(part)
		return nil
	}
	p.began = true
	p.put([]byte{byte(t)})
	p.put(part)
	p.put(p.count)
	return nil
}

// dump sends a value in the form that RESTORE takes. A large value is encoded twice: first for its length.
func dump(c *command.Call) error {
	v, err := c.Open(c.Args[1], command.Reading{})
	if err != nil {
		return err
	}
	if v == nil {
		c.W.Null()
		return nil
	}
	var counted payload
	enc := &encode.Encoder{Version: dumpVersion, Spill: counted.spill, Memory: c.Sorting().Memory, TempDir: c.Server.TempDir}
	value, fields, err := encoded(enc, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if fields {
		counted, enc.Version = payload{}, fieldVersion
		if v, err = c.Open(c.Args[1], command.Reading{}); err == nil && v == nil {
			err = resp.ErrChanged
		}
		if err != nil {
			return err
		}
		value, _, err = encoded(enc, v)
		if err = errors.Join(err, v.Close()); err != nil {
			return err
		}
	}
	if !value.Spilt {
		c.W.Bulk(rdb.AppendDump(nil, value.Type, enc.Version, value.Append(nil)))
		return nil
	}
	return dumpLarge(c, enc, &counted, &value)
}

// encoded encodes a value, and reports whether fields of a hash have an expiry.
func encoded(enc *encode.Encoder, v command.Value) (out encode.Value, fields bool, err error) {
	h := *v.Header()
	enc.Begin(&h)
	var failed error
	err = command.Each(v, func(_ *record.Header, e *record.Element) bool {
		fields = fields || h.Type == record.Hash && e.ExpireMS != 0
		failed = enc.Elements([]record.Element{*e})
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return encode.Value{}, false, err
	}
	out, ok, err := enc.End()
	if err == nil && !ok {
		err = errors.New("the value is empty")
	}
	return out, fields, err
}

// dumpLarge encodes a value again, now that its length is known.
func dumpLarge(c *command.Call, enc *encode.Encoder, counted *payload, first *encode.Value) error {
	p := payload{count: rdb.AppendLen(nil, first.Count), w: c.W}
	total := counted.n + int64(len(p.count)+len(first.Body)) + 10
	v, err := c.Open(c.Args[1], command.Reading{})
	if err == nil && v == nil {
		err = resp.ErrChanged
	}
	if err != nil {
		return err
	}
	c.W.BulkLen(total)
	enc.Spill = p.spill
	again, _, err := encoded(enc, v)
	if err = errors.Join(err, v.Close()); err == nil {
		p.put(again.Body)
		p.put(binary.LittleEndian.AppendUint16(nil, uint16(enc.Version.Number)))
		c.W.Piece(binary.LittleEndian.AppendUint64(nil, p.sum))
		c.W.Piece([]byte("\r\n"))
		if p.n+8 != total {
			err = resp.ErrChanged
		}
	}
	if err != nil {
		c.W.Fail(err)
	}
	return err
}
