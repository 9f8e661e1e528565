package columns

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
)

// inner is a group.
type inner struct {
	Name *string `parquet:"name,optional"`
}

// other is a row as other programs write it.
type other struct {
	Text   *string          `parquet:"text,optional,dict"`
	Long   string           `parquet:"long,delta"`
	Flag   bool             `parquet:"flag"`
	Small  int32            `parquet:"small,delta"`
	Big    uint64           `parquet:"big"`
	Less   uint32           `parquet:"less"`
	Single float32          `parquet:"single,split"`
	Double float64          `parquet:"double"`
	Price  int64            `parquet:"price,decimal(2:18)"`
	UUID   [16]byte         `parquet:"uuid,uuid"`
	Day    int32            `parquet:"day,date"`
	Clock  int64            `parquet:"clock,time(microsecond)"`
	Stamp  time.Time        `parquet:"stamp,timestamp(millisecond)"`
	Nano   int64            `parquet:"nano,timestamp(nanosecond)"`
	Old    deprecated.Int96 `parquet:"old"`
	Fixed  [3]byte          `parquet:"fixed"`
	Wide   [4]byte          `parquet:"wide,decimal(1:9)"`
	Local  int64            `parquet:"local,timestamp(millisecond:local)"`
	In     inner            `parquet:"in"`
	List   []string         `parquet:"list,list"`
}

// othersWant are the texts of row 1.
var othersWant = map[string]string{
	"text": "t1", "long": strings.Repeat("x", 100) + "1", "flag": "true", "small": "-1", "big": "18446744073709551614", "less": "4294967294",
	"single": "0.1", "double": "1e+300", "price": "-0.01", "uuid": "01020304-0506-0708-090a-0b0c0d0e0f10", "day": "1969-12-31",
	"clock": "00:00:01.5", "stamp": "2030-01-01T00:00:00.001Z", "nano": "1970-01-01T00:00:00.000000001Z", "old": "1970-01-02T00:00:00.000000001Z",
	"fixed": "abc", "wide": "-0.2", "local": "1970-01-01T00:00:00.001", "in.name": "n1",
}

const others = 700

// writeOthers writes rows; those whose number is 0 after division by 3 have nulls.
func writeOthers(t testing.TB, options ...parquet.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[other](&out, append(options, parquet.PageBufferSize(1<<12))...)
	for i := range others {
		row := other{Long: strings.Repeat("x", 100) + fmt.Sprint(i), Flag: i%2 == 1, Small: int32(-i), Big: ^uint64(i), Less: ^uint32(i),
			Single: float32(i) / 10, Double: 1e300 * float64(i), Price: int64(-i), UUID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Day: int32(-i),
			Clock: 1500000, Stamp: time.UnixMilli(1893456000000 + int64(i)), Nano: int64(i), Old: deprecated.Int96{uint32(i), 0, uint32(2440588 + i)},
			Fixed: [3]byte{'a', 'b', 'c'}, Wide: [4]byte{255, 255, 255, 254}, Local: int64(i), List: []string{"l"}}
		if text, name := fmt.Sprintf("t%d", i%5), fmt.Sprintf("n%d", i); i%3 > 0 {
			row.Text, row.In.Name = &text, &name
		}
		if _, err := w.Write([]other{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readOthers returns the texts of a column; null is "-".
func readOthers(b []byte, name string) (out []string, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	l, err := f.Leaf(name)
	if err != nil {
		return nil, err
	}
	for g := range f.Groups() {
		c, err := f.Cells(g, l)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		for {
			if err := c.Next(); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if c.IsNull() {
				out = append(out, "-")
				continue
			}
			out = append(out, string(c.Append(nil)))
			if l.IsNumber() {
				if _, _, err := c.Number(); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// TestForeign reads every type that other programs write, in both versions of pages and in every codec.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 2} {
		for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw, &parquet.Brotli} {
			b := writeOthers(t, parquet.DataPageVersion(version), parquet.Compression(codec))
			for name, want := range othersWant {
				got, err := readOthers(b, name)
				if err != nil || len(got) != others || got[1] != want {
					t.Fatalf("version %d, %s, %s: %d rows, %q, want %q: %v", version, codec, name, len(got), got[min(1, len(got)):min(2, len(got))], want, err)
				}
				if null := got[3] == "-"; null != (name == "text" || name == "in.name") {
					t.Errorf("%s of row 3 is %q", name, got[3])
				}
			}
		}
	}
	b := writeOthers(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	times, integers := []string{"day", "stamp", "nano", "old", "local"}, []string{"small"}
	for name := range othersWant {
		l, err := f.Leaf(name)
		if err != nil || l.IsTime() != slices.Contains(times, name) || l.IsInteger() != slices.Contains(integers, name) {
			t.Errorf("%s is a time: %v, an integer: %v: %v", name, l.IsTime(), l.IsInteger(), err)
		}
	}
	for name, want := range map[string]string{"list.list.element": "is within a list: name the column \"list.list\"",
		"nothing": "no column \"nothing\": it has text, long"} {
		if _, err := readOthers(b, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("column %s: %v, want %s", name, err, want)
		}
	}
}

// TestForeignDamage: a flipped byte is an error or changes values; it is never a panic.
func TestForeignDamage(t *testing.T) {
	t.Parallel()
	failed, step := 0, 97
	if testing.Short() {
		step *= 3
	}
	for n, codec := range []compress.Codec{&parquet.Snappy, &parquet.Lz4Raw, &parquet.Brotli} {
		version := 1 + n%2
		whole := writeOthers(t, parquet.DataPageVersion(version), parquet.Compression(codec))
		for i := version; i < len(whole); i += step {
			b := bytes.Clone(whole)
			b[i] ^= 0xff
			for _, name := range []string{"text", "long", "small", "flag", "uuid"} {
				if _, err := readOthers(b, name); err != nil {
					failed++
				}
			}
		}
	}
	if failed < 100 {
		t.Errorf("%d errors", failed)
	}
}
