package rocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// decode renders the entries of a batch.
func decode(b []byte) (string, error) {
	var out []string
	d := &writeBatch{Fields: base.Fields{Buf: b}}
	err := d.Decode(func(e logEntry) error {
		v, err := e.Whole()
		out = append(out, fmt.Sprintf("%d:%d/%d %s=%s", e.Seq, e.Family, e.Kind, e.Key, v))
		return err
	})
	return strings.Join(out, ", "), err
}

func TestEntries(t *testing.T) {
	op, opCF := testsst.Op, testsst.OpCF
	got, err := decode(testsst.Batch(10, op(base.KindPut, "a", "1"), op(base.KindLogData, "blob"), op(base.KindDelete, "b"),
		op(base.KindNoop), op(base.KindSingleDelete, "c"), op(base.KindMerge, "d", "2"), op(base.KindRangeDelete, "e", "f"),
		opCF(base.KindCFPut, 3, "a", ""), opCF(base.KindCFDelete, 300, "b"), opCF(base.KindCFSingleDelete, 3, "c"),
		opCF(base.KindCFMerge, 3, "d", "4"), opCF(base.KindCFRangeDelete, 3, "e", "f")))
	want := "10:0/1 a=1, 11:0/0 b=, 12:0/7 c=, 13:0/2 d=2, 14:0/15 e=f, 15:3/1 a=, 16:300/0 b=, 17:3/7 c=, 18:3/2 d=4, 19:3/15 e=f"
	if got != want || err != nil {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	if got, err := decode(testsst.Batch(base.MaxSequence, op(base.KindPut, "a", "1"))); got != "72057594037927935:0/1 a=1" ||
		err != nil {
		t.Errorf("the last sequence number: %s, %v", got, err)
	}
	got, err = decode(testsst.Batch(10, op(base.KindWideColumns, "a", "1"), opCF(base.KindCFWideColumns, 3, "b", "2"),
		op(base.KindWriteTime, "c", "3"),
		opCF(base.KindCFWriteTime, 3, "d", "4"), op(base.KindBlobIndex, "e", "5"), opCF(base.KindCFBlobIndex, 3, "f", "6"),
		op(base.KindPut, "g", "7")))
	want = "10:0/22 a=1, 11:3/22 b=2, 12:0/24 c=3, 13:3/24 d=4, 14:0/16 e=5, 15:3/16 f=6, 16:0/1 g=7"
	if got != want || err != nil {
		t.Errorf("rows of kinds that are not known: %s, %v\nwant %s", got, err, want)
	}
	if got, err := decode(testsst.Batch(10)); got != "" || err != nil {
		t.Errorf("an empty batch: %s, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	op := testsst.Op
	head := func(n uint32, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32(make([]byte, 8), n), rest...)
	}
	for _, tt := range []struct {
		want        string
		batch       []byte
		unsupported bool
	}{
		{"begin of a prepared transaction (tag 0x9)", testsst.Batch(1, []byte{0x09}), true},
		{"end of a prepared transaction (tag 0xa)", testsst.Batch(1, []byte{0x0a}), true},
		{"commit of a prepared transaction (tag 0xb)", testsst.Batch(1, []byte{0x0b}), true},
		{"rollback of a prepared transaction (tag 0xc)", testsst.Batch(1, []byte{0x0c}), true},
		{"begin of a persisted prepared transaction (tag 0x12)", testsst.Batch(1, []byte{0x12}), true},
		{"begin of an unprepared transaction (tag 0x13)", testsst.Batch(1, []byte{0x13}), true},
		{"commit of a prepared transaction with timestamp (tag 0x15)", testsst.Batch(1, []byte{0x15}), true},
		{"delete with timestamp", testsst.Batch(1, op(base.KindDeleteTimestamp, "k")), true},
		{"tag 0x55", testsst.Batch(1, []byte{0x55}), true},
		{"need 8 bytes, have 3", []byte{1, 2, 3}, false},
		{"1 entries, but 2 in the header", head(2, op(base.KindPut, "a", "b")...), false},
		{"need 9 bytes, have 1", head(1, base.KindPut, 9, 'x'), false},
		{"varint", head(1, base.KindPut, 0xff), false},
		{"sequence number", testsst.Batch(1<<60, op(base.KindPut, "a", "b")), false},
		{"sequence number", testsst.Batch(base.MaxSequence+1, op(base.KindPut, "a", "b")), false},
	} {
		got, err := decode(tt.batch)
		var c *record.CorruptError
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, base.ErrUnsupported) != tt.unsupported ||
			!errors.As(err, &c) {
			t.Errorf("%q: %s, %v", tt.want, got, err)
		}
	}
}

// TestNewBatch decodes records of a log: one that is in memory, and one too large for it.
func TestNewBatch(t *testing.T) {
	large := strings.Repeat("v", 2*LargeValue)
	log := testsst.Log(7, false, testsst.Batch(1, testsst.Op(base.KindPut, "a", "1")),
		testsst.Batch(2, testsst.Op(base.KindPut, "b", large), testsst.Op(base.KindPut, "c", "3")))
	l := logfile.NewReader(bytes.NewReader(log), 7)
	l.Huge = LargeValue
	var got []string
	var all seqSet
	for range 2 {
		rec, off, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		d, err := newBatch(l, rec, off)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Decode(func(e logEntry) error {
			v, err := e.Whole()
			got = append(got, fmt.Sprintf("%s %d %t", e.Key, len(v), e.From != nil))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := d.Seqs(); ok {
			all.Add(r, off)
		}
	}
	if !slices.Equal(got, []string{"a 1 false", "b 2097152 true", "c 1 false"}) {
		t.Errorf("%q", got)
	}
	if len(all.ranges) != 1 || !all.Has(1) || !all.Has(3) || all.Has(4) || all.Has(0) {
		t.Errorf("sequence numbers %v", all)
	}
	stop := errors.New("stop")
	b := &writeBatch{Fields: base.Fields{Buf: testsst.Batch(1, testsst.Op(base.KindDelete, "a"))}}
	if err := b.Decode(func(logEntry) error {
		return stop
	}); err != stop {
		t.Errorf("%v", err)
	}
}
