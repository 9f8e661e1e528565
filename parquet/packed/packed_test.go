package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestCheckRuns counts the values of runs: one value with a count, and packs of 8.
func TestCheckRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b           []byte
		width, left int64
		ok          bool
	}{
		{nil, 1, 0, true}, {[]byte{6, 1}, 1, 3, true}, {[]byte{6, 1}, 1, 2, false}, {[]byte{6}, 1, 3, false}, {[]byte{3, 0xaa}, 1, 8, true},
		{[]byte{3, 0xaa}, 1, 7, false}, {[]byte{3, 0xaa}, 2, 8, false}, {[]byte{6, 1}, 33, 3, false}, {[]byte{0x80}, 1, 3, false},
		{binary.AppendUvarint(nil, 1<<40|1), 1, 1 << 30, false},
	} {
		if err := CheckRuns(c.b, c.width, c.left); (err == nil) != c.ok {
			t.Errorf("%x of %d bits, %d left: %v", c.b, c.width, c.left, err)
		}
	}
}

// TestDifferences decodes what the library packs, and differences of 33 bits, as DuckDB packs unsigned integers.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for step := range 40 {
		var values []int32
		var plain []byte
		for i := range 300 {
			v := int32(i*i%977) << (step % 31) * int32(1-i%2*2)
			values, plain = append(values, v), binary.LittleEndian.AppendUint32(plain, uint32(v))
		}
		b, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Differences(b, 300); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("step %d: %v", step, err)
		}
	}
	values := []uint32{0, 4294967, math.MaxUint32, 5}
	const least, width = 5 - math.MaxUint32, 33
	wide := append(binary.AppendVarint([]byte{8, 1, 4, 0}, least), width)
	at := len(wide)
	wide = append(wide, make([]byte, width)...)
	var plain []byte
	for i, v := range values {
		plain = binary.LittleEndian.AppendUint32(plain, v)
		for bit := 0; i > 0 && bit < width; bit++ {
			to := (i-1)*width + bit
			wide[at+to/8] |= byte(uint64(int64(v)-int64(values[i-1])-least)>>bit&1) << (to % 8)
		}
	}
	if got, err := Differences(wide, 4); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%v, want %v: %v", got, plain, err)
	}
	if _, err := Differences(wide[:len(wide)-1], 4); err == nil {
		t.Error("a byte too few")
	}
}

// TestUnfold unfolds what the library folds, and refuses what would have no end.
func TestUnfold(t *testing.T) {
	t.Parallel()
	var data, plain []byte
	offsets := []uint32{0}
	for i := range 1000 {
		value := fmt.Sprintf("%s%d", strings.Repeat("key:", i%7), i*i%977)
		plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(value))), value...)
		data = append(data, value...)
		offsets = append(offsets, uint32(len(data)))
	}
	folded, err := parquet.DeltaByteArray.EncodeByteArray(nil, data, offsets)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unfold(folded, 1000, 1<<20, 0); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(plain), err)
	}
	if _, err := Unfold(folded, 999, 1<<20, 0); err == nil {
		t.Error("1000 values where 999 are left")
	}
	for n := range folded {
		if _, err := Unfold(folded[:n], 1000, 1<<20, 0); err == nil {
			t.Errorf("%d of %d bytes were enough", n, len(folded))
		}
	}
	fixed, err := parquet.DeltaByteArray.EncodeByteArray(nil, []byte("aaaabbbbbccc"), []uint32{0, 4, 9, 12})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unfold(fixed, 3, 1<<20, 4); err == nil { // 3 values of 4 bytes in all
		t.Error("values of 5 and 3 bytes are two of 4")
	}
	same, lengths := make([]int32, 1<<12), make([]int32, 1<<12)
	for i := range same[1:] {
		same[i+1] = 1 << 20
	}
	lengths[0] = 1 << 20
	bomb, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, same)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, lengths)
	if err != nil {
		t.Fatal(err)
	}
	bomb = append(append(bomb, rest...), make([]byte, 1<<20)...) // 4 GiB of a megabyte
	if _, err := Unfold(bomb, 1<<12, 64<<20, 0); err == nil || !strings.Contains(err.Error(), "bytes of values") {
		t.Error(err)
	}
}
