package kvrocks

import (
	"errors"
	"fmt"
	"io"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// moduleReader reads the rows of values that only Kvrocks understands.
type moduleReader struct {
	r      *versioned.Reader
	native []byte // name
	arena  []byte
	begun  bool // the metadata row was read
	done   bool
	sums   codec.ModuleSums
}

func newModuleReader(r *versioned.Reader) versioned.Elements { return &moduleReader{r: r} }

// Begin starts a value.
func (x *moduleReader) Begin() error {
	x.begun, x.done, x.sums = false, false, codec.ModuleSums{}
	h, m := x.r.Header(), x.r.Meta()
	h.Len, h.Native = -1, ""
	x.native = codec.AppendModule(x.native[:0], x.kind(), x.kind() == codec.KindJSON && m.Value[0] != 0)
	if !x.kind().Known() {
		x.r.Remark(record.FindNewer, record.Error, fmt.Sprintf("%s is not known; its rows are carried as they are", x.kind()))
	}
	if x.kind() == codec.KindBitmap {
		x.r.Remark(FindLongBitmap, record.Note,
			fmt.Sprintf("a bitmap of %s bytes, too large to be read as a string: raise --max-bitmap", record.Number(m.Count)))
	}
	return nil
}

func (x *moduleReader) kind() codec.Kind { return kindOfMeta(x.r.Meta()) }

// Read returns the metadata row and the rows below it, or a document.
func (x *moduleReader) Read(dst []record.Element) (int, error) {
	switch m := x.r.Meta(); {
	case x.done:
		return 0, io.EOF
	case x.kind() == codec.KindJSON:
		x.done = true
		if !codec.IsDocument(m.Value) {
			x.r.DamageAt(nil, FindModule, "the value is not one document: bytes are missing, left over or unknown")
		}
		dst[0] = record.Element{Name: x.native, Value: m.Value[codec.JSONExtras:]}
		return 1, nil
	case !x.begun:
		x.begun = true
		x.arena = codec.AppendPart(x.arena[:0], codec.Part{Meta: true, Size: uint64(m.Count), Value: m.Value})
		dst[0] = record.Element{Name: x.native, Value: x.arena}
		return 1, nil
	}
	for {
		rows, skip, err := x.r.Batch(min(len(dst), record.BatchLen))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			x.done = true
			if wrong := x.sums.Wrong(x.kind(), x.r.Meta().Value); wrong != "" {
				x.r.DamageAt(nil, FindModule, "%s", wrong)
			}
			return 0, io.EOF
		}
		if n := x.convertRows(dst, rows, skip); n > 0 {
			return n, nil
		}
	}
}

// convertRows converts rows to elements.
func (x *moduleReader) convertRows(dst []record.Element, rows []store.Row, skip int) (n int) {
	x.arena = x.arena[:0]
	for i := range rows {
		version, sub, _ := versionOf(rows[i].Key[skip:])
		if x.r.Stale(version, i) {
			continue
		}
		if err := codec.CheckModuleRow(x.kind(), sub, rows[i].Value); err != nil {
			x.r.Broken(&rows[i], i, dataset.ValueKind(err), err)
			continue
		}
		at := len(x.arena)
		x.arena = x.appendRow(x.arena, sub, rows[i].Value)
		dst[n] = record.Element{Name: x.native, Value: x.arena[at:len(x.arena):len(x.arena)]}
		n++
	}
	x.r.Keep(int64(n))
	return n
}

// appendRow appends a row. A segment of a bitmap is cut or padded with zeros to 1024 bytes.
func (x *moduleReader) appendRow(dst, sub, value []byte) []byte {
	x.sums.Add(sub, value)
	if x.kind() != codec.KindBitmap {
		return codec.AppendPart(dst, codec.Part{Sub: sub, Value: value})
	}
	value = value[:min(len(value), codec.SegmentLen)]
	return append(codec.AppendPart(dst, codec.Part{Sub: sub, Value: value}), make([]byte, codec.SegmentLen-len(value))...)
}

// End classifies the unread rows of a value.
func (x *moduleReader) End() error { return versioned.Drain(x) }

// Close is a no-op.
func (x *moduleReader) Close() error { return nil }

// moduleWriter writes values that only Kvrocks understands.
type moduleWriter struct {
	w     *versioned.TypeWriter
	begun bool
	size  uint64
	hold  []byte // extras of the metadata row
}

func newModuleWriter(w *versioned.TypeWriter) versioned.ElementWriter { return &moduleWriter{w: w} }

// Begin starts a value.
func (x *moduleWriter) Begin() { x.begun, x.size, x.hold = false, 0, x.hold[:0] }

// Write adds pieces of a value; the first one names its type.
func (x *moduleWriter) Write(elems []record.Element) error {
	for i := range elems {
		e := &elems[i]
		m := x.w.Meta()
		if !x.begun {
			kind, cbor := codec.ModuleKind(string(e.Name))
			m.Kind, x.begun = uint8(kind), true
			if kind == 0 {
				return fmt.Errorf("key %s: a value of %s, which Kvrocks does not support", record.Quote(m.Key),
					record.Quote(e.Name))
			}
			if kind == codec.KindJSON {
				x.hold = append(append(x.hold, boolByte(cbor)), e.Value...)
				continue
			}
		}
		if err := x.piece(e); err != nil {
			return fmt.Errorf("key %s: %s: %w", record.Quote(m.Key), record.Quote(e.Name), err)
		}
	}
	return nil
}

// piece writes a row below metadata, or keeps the content of the metadata row.
func (x *moduleWriter) piece(e *record.Element) error {
	if kindOfMeta(x.w.Meta()) == codec.KindJSON {
		return errors.New("a document of more than one value")
	}
	p, err := codec.DecodePart(e.Value)
	if err != nil {
		return err
	}
	if p.Meta {
		x.size, x.hold = p.Size, append(x.hold[:0], p.Value...)
		return nil
	}
	return x.w.Put(p.Sub, p.Value)
}

// End sets the extras and the count of the metadata row, which follows.
func (x *moduleWriter) End() error {
	x.w.Meta().Value = x.hold
	x.w.Count(x.size)
	return nil
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// keepModules drops values of types that the server does not have.
func (f kvrocksFormat) keepModules(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		kind, _ := codec.ModuleKind(string(e.Name))
		if f.has(kind) {
			return true
		}
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: fmt.Sprintf("a value of %s", record.Quote(e.Name))})
		return false
	})
}
