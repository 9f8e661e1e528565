package kvrocks

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// Values that only Kvrocks understands are records of type other. The name of the type is that which the command TYPE
// answers, after modulePrefix. A JSON document is its own value; of other types each row is an element, whose value is
//
//	the metadata row    00 size(8) extras
//	a row below it      01 slen(uvarint) sub value
//
// size is big endian, sub what follows the version in the row's key.
const (
	modulePrefix = "kvrocks:"
	cborSuffix   = "+cbor"
	partMeta     = 0
	partRow      = 1
)

// moduleName is the native name of the current record.
func (r *reader) moduleName() string {
	name := modulePrefix + r.m.Kind.String()
	if r.m.Kind == codec.KindJSON && r.m.Extras[0] != 0 {
		name += cborSuffix
	}
	return name
}

// readModule reads the rows of a value that only Kvrocks understands.
func (r *reader) readModule(dst []record.Element) (int, error) {
	if !r.begun {
		r.begun = true
		r.native = append(r.native[:0], r.moduleName()...)
		if r.m.Kind == codec.KindJSON {
			r.drained = true
			dst[0] = record.Element{Name: r.native, Value: r.m.Extras[codec.JSONExtras:]}
			return 1, nil
		}
		r.arena = binary.BigEndian.AppendUint64(append(r.arena[:0], partMeta), r.m.Size)
		r.arena = append(r.arena, r.m.Extras...)
		dst[0] = record.Element{Name: r.native, Value: r.arena}
		return 1, nil
	}
	for {
		rows, skip, err := r.sets[roleData].Batch(min(len(dst), batchLen))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			r.drained = true
			r.checkModule()
			return 0, io.EOF
		}
		n := 0
		r.arena = r.arena[:0]
		for _, row := range rows {
			rest := row.Key[skip:]
			if codec.Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
				r.tally[roleData].Rows[record.Stale]++
				continue
			}
			at := len(r.arena)
			sub := rest[codec.VersionLen:]
			r.count(sub, row.Value)
			r.arena = append(binary.AppendUvarint(append(r.arena, partRow), uint64(len(sub))), sub...)
			r.arena = append(r.arena, row.Value[:r.counting(row.Value)]...)
			if r.m.Kind == codec.KindBitmap { // whose last segment may end early
				r.arena = append(r.arena, make([]byte, codec.SegmentLen-r.counting(row.Value))...)
			}
			dst[n] = record.Element{Name: r.native, Value: r.arena[at:len(r.arena):len(r.arena)]}
			n++
		}
		if r.rows[roleData] += int64(n); n > 0 {
			return n, nil
		}
	}
}

// moduleCount counts what metadata of a module's value tells of.
type moduleCount struct {
	bytes     uint64
	centroids uint64
}

// count takes note of a row.
func (r *reader) count(sub, value []byte) {
	r.module.bytes += uint64(len(value))
	if len(sub) > 0 && sub[0] == 1 {
		r.module.centroids++
	}
}

// counting is how many bytes of a row's value count.
func (r *reader) counting(value []byte) int {
	if r.m.Kind == codec.KindBitmap {
		return min(len(value), codec.SegmentLen)
	}
	return len(value)
}

// checkModule compares the rows with what metadata tells of them.
func (r *reader) checkModule() {
	if r.h.Expired {
		return
	}
	x := r.m.Extras
	switch r.m.Kind {
	case codec.KindBloom:
		filters, size := uint64(binary.BigEndian.Uint16(x)), uint64(binary.BigEndian.Uint32(x[16:]))
		if filters != uint64(r.rows[roleData]) || size != r.module.bytes {
			r.damage(roleMeta, FindModule, r.place, "metadata tells of %d filters of %d bytes, there are %d of %d",
				filters, size, r.rows[roleData], r.module.bytes)
		}
	case codec.KindTDigest:
		if merged := binary.BigEndian.Uint64(x[16:]); merged != r.module.centroids {
			r.damage(roleMeta, FindModule, r.place, "metadata tells of %d merged nodes, there are %d", merged, r.module.centroids)
		}
	}
}

// moduleKind is the kind of a native name, 0 for those of other servers.
func moduleKind(native string) (kind codec.Kind, cbor bool) {
	name, ok := strings.CutPrefix(native, modulePrefix)
	if !ok {
		return 0, false
	}
	name, cbor = strings.CutSuffix(name, cborSuffix)
	for k := codec.Kind(1); k < codec.NumKinds; k++ {
		if codec.KindNames[k] == name {
			return k, cbor
		}
	}
	return 0, false
}

// writeModule writes an element of a value that only Kvrocks understands. The first says which it is.
func (w *writer) writeModule(e *record.Element) error {
	if w.count == 1 {
		kind, cbor := moduleKind(string(e.Name))
		if w.kind = kind; kind == 0 {
			return w.errorf(w.user, "a value of %s, which Kvrocks does not understand", record.Quote(e.Name))
		}
		if kind == codec.KindJSON {
			w.hold = append(append(w.hold[:0], boolByte(cbor)), e.Value...)
			return nil
		}
		if err := w.openRows(); err != nil {
			return err
		}
	}
	switch {
	case w.kind == codec.KindJSON:
		return w.errorf(w.user, "a document of more than one value")
	case len(e.Value) > 8 && e.Value[0] == partMeta:
		w.size, w.hold = binary.BigEndian.Uint64(e.Value[1:]), append(w.hold[:0], e.Value[9:]...)
		return nil
	case len(e.Value) > 1 && e.Value[0] == partRow:
		n, width := binary.Uvarint(e.Value[1:])
		rest := e.Value[1+max(0, width):]
		if width <= 0 || n > uint64(len(rest)) {
			break
		}
		w.key = append(w.key[:w.base], rest[:n]...)
		return w.out[roleData].Append(w.key, rest[n:])
	}
	return w.errorf(w.user, "%s: a part of it cannot be decoded", record.Quote(e.Name))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// foreignModule reports the loss of a value that other servers understand.
func foreignModule(e *record.Element, report func(record.Loss)) bool {
	kind, _ := moduleKind(string(e.Name))
	if kind == 0 {
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: fmt.Sprintf("a value of %s", record.Quote(e.Name))})
	}
	return kind != 0
}
