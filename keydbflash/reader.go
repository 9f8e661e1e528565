package keydbflash

import (
	"errors"
	"fmt"
	"io"
	"kvferry/internal/shared/dataset"

	"kvferry/internal/shared/findings"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// valueReader reads elements of values that are payloads of DUMP.
type valueReader struct {
	r        *versioned.Reader
	d        rdb.Decoder
	done     bool
	some     bool  // something was read
	expiring bool  // members may, and records have no place for it
	members  int64 // that will
}

func newValueReader(r *versioned.Reader) versioned.Elements {
	return &valueReader{r: r, d: rdb.Decoder{TempDir: r.TempDir(), Memory: r.Memory() / 4}}
}

// Begin starts a value. One that does not begin as its type says is no record.
func (x *valueReader) Begin() error {
	v, _ := decodeValue(x.r.Meta().Value)
	h := x.r.Header()
	t := h.Type
	dump, err := v.payload()
	if err == nil {
		err = at(v.off, x.d.Begin(dump.Type, dump.Header, dump.Value, dump.Off, h))
	}
	if h.Type = t; err != nil {
		return &findings.Error{Kind: kindOf(err), Err: err}
	}
	x.done, x.some, x.expiring, x.members = false, false, false, 0
	if t == record.Hash || t == record.Set || t == record.ZSet {
		x.expire(&v)
		x.expiring = x.expiring && t != record.Hash
	}
	if x.expiring {
		h.Len = -1
	}
	return nil
}

// expire has members expire.
func (x *valueReader) expire(v *value) {
	for rest := v.expiries; len(rest) > 0; {
		var subkey []byte
		var when int64
		if subkey, when, rest = nextExpiry(rest); len(subkey) > 0 {
			x.d.ExpireMember(subkey, when)
			x.expiring = true
		}
	}
}

// Read returns elements. A value that is damaged ends with what could be read of it.
func (x *valueReader) Read(dst []record.Element) (n int, err error) {
	for !x.done {
		if n, err = x.d.Read(dst); err != nil {
			x.done = true
			return 0, x.end(err)
		}
		x.some = true
		if x.expiring {
			var expiring int64
			n, expiring = dataset.KeepMembers(dst[:n], x.r.Env().Now.UnixMilli())
			x.members += expiring
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// end says what is wrong with a value that was read, and returns io.EOF unless it could not be read for another reason.
func (x *valueReader) end(err error) error {
	if x.members += x.d.Unread(); x.members > 0 && !x.r.Header().Expired {
		x.r.Remark(record.LossMemberExpiry, record.Warning, dataset.MembersDetail(x.members))
	}
	if err == io.EOF {
		if says, has, ok := x.d.StreamLength(); ok && says != has {
			x.r.Remark(FindStreamLength, record.Warning, fmt.Sprintf("the stream says that it has %s, but has %d", record.Plural(int64(says), "entry"), has))
		}
		return io.EOF
	}
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	if v, _ := decodeValue(x.r.Meta().Value); !x.some && x.r.Header().Type != record.Stream { // a stream is one without entries
		x.r.Spoil()
		x.r.Malformed(kindOf(err), x.r.Header().Key, x.r.Header().Key, x.r.Place(), at(v.off, err))
		return io.EOF
	}
	x.r.DamageAt(nil, kindOf(err), "%s", corrupt.Reason())
	return io.EOF
}

// End leaves what was not read.
func (x *valueReader) End() error { return nil }

// Close lets go of temporary files.
func (x *valueReader) Close() error { return x.d.Close() }
