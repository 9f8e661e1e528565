package deleted

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// joiner joins base and operands; an operand "x" removes the row.
var joiner = &store.Merger{Name: "joiner", Fold: func(dst, _, base []byte, operands [][]byte) ([]byte, bool, error) {
	dst = append(dst, base...)
	for _, o := range operands {
		dst = append(dst, o...)
		if string(o) == "x" {
			return nil, false, nil
		}
	}
	return dst, true, nil
}}

// write is an entry of a model.
type write struct {
	kind       store.Kind
	key, value string // of range deletes: start and end
	seq        uint64
}

// at is the value of a key right before a sequence number.
func at(all []write, key string, limit uint64) (value string, ok bool) {
	var ops [][]byte
	for _, w := range all { // ascending
		if w.seq >= limit || w.kind != store.RangeDelete && w.key != key {
			continue
		}
		switch w.kind {
		case store.RangeDelete:
			if w.key <= key && key < w.value {
				ok, value, ops = false, "", nil
			}
		case store.Put:
			ok, value, ops = true, w.value, nil
		case store.Merge:
			ops = append(ops, []byte(w.value))
		default:
			ok, value, ops = false, "", nil
		}
	}
	if len(ops) > 0 {
		v, keep, _ := joiner.Fold(nil, nil, []byte(value), ops)
		return string(v), keep
	}
	return value, ok
}

// keyspaceOf shows writes as a store does.
func keyspaceOf(all []write) *fake {
	f := &fake{}
	for _, w := range all {
		e := store.Entry{Key: []byte(w.key), Value: []byte(w.value), Seq: w.seq, Kind: w.kind}
		for _, r := range all {
			e.Covered = e.Covered || w.kind != store.RangeDelete && r.kind == store.RangeDelete && r.seq > w.seq &&
				r.key <= w.key && w.key < r.value
		}
		f.entries = append(f.entries, e)
	}
	slices.SortFunc(f.entries, func(a, b store.Entry) int {
		ra, rb := a.Kind == store.RangeDelete, b.Kind == store.RangeDelete
		if c := bytes.Compare(a.Key, b.Key); c != 0 || ra == rb {
			return cmp.Or(c, cmp.Compare(b.Seq, a.Seq))
		}
		if ra {
			return -1
		}
		return 1
	})
	return f
}

func TestHistoryModel(t *testing.T) {
	const keys = "abcde"
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all []write
		for seq := uint64(1); seq < 40; seq++ {
			w := write{kind: store.Kind(rnd.IntN(5)), key: string(keys[rnd.IntN(5)]), value: fmt.Sprint(seq, ";"), seq: seq}
			switch {
			case w.kind == store.RangeDelete:
				w.value = string(keys[rnd.IntN(5)] + 1)
			case w.kind == store.Merge && rnd.IntN(5) == 0:
				w.value = "x"
			}
			all = append(all, w)
		}
		checkHistory(t, seed, rnd, all)
	}
}

// checkHistory looks up each key at some times, going back, and follows its moments.
func checkHistory(t *testing.T, seed uint64, rnd *rand.Rand, all []write) {
	t.Helper()
	h, err := NewHistory(context.Background(), keyspaceOf(all), joiner, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	last := ""
	for {
		raw, err := h.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		key := string(raw)
		if key <= last {
			t.Errorf("seed %d: key %s after %s", seed, key, last)
		}
		last = key
		for limit := []uint64{math.MaxUint64, 30, 20}[rnd.IntN(3)]; limit > 0; {
			value, m, ok, err := h.Before(limit)
			if err != nil {
				t.Fatal(err)
			}
			want, exists := at(all, key, limit)
			if ok != exists || ok && string(value) != want {
				t.Errorf("seed %d: %s before %d is %q, %v; want %q, %v", seed, key, limit, value, ok, want, exists)
			}
			limit = m.Seq
			if rnd.IntN(3) == 0 {
				limit -= min(limit, uint64(rnd.IntN(12)))
			}
		}
	}
}

// TestHistoryCutTombstone: a range tombstone truncated to its table's bounds does not cover entries that the
// store marks as not covered.
func TestHistoryCutTombstone(t *testing.T) {
	f := &fake{entries: []store.Entry{
		{Key: []byte("a"), Value: []byte("z"), Seq: 9, Kind: store.RangeDelete},
		{Key: []byte("b"), Value: []byte("1"), Seq: 5, Covered: true},
		{Key: []byte("c"), Value: []byte("2"), Seq: 6},
	}}
	h, err := NewHistory(context.Background(), f, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		key, err := h.Next()
		if err != nil {
			break
		}
		v, m, ok, _ := h.Before(math.MaxUint64)
		got = append(got, fmt.Sprintf("%s %s %v %+v", key, v, ok, m))
	}
	if want := "b  false {Seq:9 Deleted:true}, c 2 true {Seq:6 Deleted:false}"; strings.Join(got, ", ") != want {
		t.Errorf("got %q", got)
	}
}

func TestHistoryErrors(t *testing.T) {
	boom := errors.New("boom")
	f := newFake("a put 1", "b put 2")
	f.fail = boom
	h, _ := NewHistory(context.Background(), f, nil, nil, nil)
	for range 2 {
		if _, err := h.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Next(); !errors.Is(err, boom) {
		t.Errorf("entries fail: %v", err)
	}
	operands := &fake{entries: []store.Entry{{Key: []byte("a"), Value: []byte("1"), Seq: 2, Kind: store.Merge},
		{Key: []byte("b"), Seq: 1, Kind: 77}}}
	h, _ = NewHistory(context.Background(), operands, nil, nil, nil)
	if _, err := h.Next(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := h.Before(9); err == nil || !strings.Contains(err.Error(), "merge") {
		t.Errorf("without a merger: %v", err)
	}
	if _, err := h.Next(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := h.Before(9); err == nil || !strings.Contains(err.Error(), "kind(77)") {
		t.Errorf("of no kind: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(boom)
	var many []string
	for i := range 2 * record.CheckEvery {
		many = append(many, fmt.Sprintf("%05d put 1", i))
	}
	h, _ = NewHistory(ctx, newFake(many...), nil, nil, nil)
	for range many {
		if _, err := h.Next(); err != nil {
			if !errors.Is(err, boom) {
				t.Errorf("cancelled: %v", err)
			}
			return
		}
	}
	t.Error("cancelled: all keys were walked")
}
