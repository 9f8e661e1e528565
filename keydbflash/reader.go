package keydbflash

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// valueReader reads elements of values that are payloads of DUMP.
type valueReader struct {
	r        *versioned.Reader
	d        rdb.Decoder
	done     bool
	some     bool  // at least one element was read
	expiring bool  // members may expire, which records cannot hold
	members  int64 // members that will expire
	nan      bool  // a score is NaN
}

func newValueReader(r *versioned.Reader) versioned.Elements {
	return &valueReader{r: r, d: rdb.Decoder{TempDir: r.TempDir(), Memory: r.Memory() / 4}}
}

// Begin starts a value. A value that does not start like its type is no record.
func (x *valueReader) Begin() error {
	v, _ := decodeValue(x.r.Meta().Value)
	h := x.r.Header()
	t := h.Type
	dump, err := v.payload()
	if err == nil {
		err = at(v.off, x.d.Begin(dump.Type, dump.Header, dump.Value, dump.Off, h))
	}
	h.Type = t
	if err != nil {
		return &dataset.KindError{Kind: kindOf(err), Err: err}
	}
	x.done, x.some, x.expiring, x.members, x.nan = false, false, false, 0, false
	if t == record.Hash || t == record.Set || t == record.ZSet {
		x.expire(&v)
		x.expiring = x.expiring && t != record.Hash
	}
	if x.expiring {
		h.Len = -1
	}
	return nil
}

// expire passes the members' expiries to the decoder.
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

// Read returns elements. A damaged value ends after its readable elements.
func (x *valueReader) Read(dst []record.Element) (n int, err error) {
	for !x.done {
		if n, err = x.d.Read(dst); err != nil {
			x.done = true
			return 0, x.end(err)
		}
		x.some = true
		x.checkScores(dst[:n])
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

// checkScores reports a NaN score, once a record.
func (x *valueReader) checkScores(elems []record.Element) {
	if x.r.Header().Type != record.ZSet || x.nan || x.r.Header().Expired {
		return
	}
	if x.nan = slices.ContainsFunc(elems, func(e record.Element) bool { return math.IsNaN(e.Score) }); x.nan {
		x.r.Remark(FindScoreNaN, record.Warning, "the score of a member is NaN, which servers do not load")
	}
}

// end reports the faults of a value after its last element. It returns io.EOF, or an error that is not damage.
func (x *valueReader) end(err error) error {
	if x.members += x.d.Unread(); x.members > 0 && !x.r.Header().Expired {
		x.r.Remark(record.LossMemberExpiry, record.Warning, dataset.MembersDetail(x.members))
	}
	if err == io.EOF {
		if says, has, ok := x.d.StreamLength(); ok && says != has {
			x.r.Remark(FindStreamLength, record.Warning, fmt.Sprintf("the stream's header counts %s, but it has %s",
				record.Count(int64(says), "entry"), record.Number(has)))
		}
		return io.EOF
	}
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	v, _ := decodeValue(x.r.Meta().Value)
	if !x.some && x.r.Header().Type != record.Stream { // it may be empty
		x.r.Spoil()
		x.r.Malformed(kindOf(err), x.r.Header().Key, x.r.Header().Key, x.r.Place(), at(v.off, err))
		return io.EOF
	}
	x.r.DamageAt(nil, kindOf(err), "%s", corrupt.Reason())
	return io.EOF
}

// End skips unread elements.
func (x *valueReader) End() error { return nil }

// Close removes temporary files.
func (x *valueReader) Close() error { return x.d.Close() }
