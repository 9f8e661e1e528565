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

// othersWant are the texts of row i.
var othersWant = map[string]func(i int) string{
	"text":    func(i int) string { return nullAt(i, fmt.Sprintf("t%d", i%5)) },
	"in.name": func(i int) string { return nullAt(i, fmt.Sprintf("n%d", i)) },
	"long":    func(i int) string { return strings.Repeat("x", 100) + fmt.Sprint(i) },
	"flag":    func(i int) string { return fmt.Sprint(i%2 == 1) },
	"small":   func(i int) string { return fmt.Sprint(-i) },
	"big":     func(i int) string { return fmt.Sprint(^uint64(i)) },
	"less":    func(i int) string { return fmt.Sprint(^uint32(i)) },
	"single":  func(i int) string { return fmt.Sprint(float32(i) / 10) },
	"double":  func(i int) string { return map[bool]string{true: "0", false: fmt.Sprint(1e300 * float64(i))}[i == 0] },
	"price":   func(i int) string { return strings.Replace(fmt.Sprintf("-%d.%02d", i/100, i%100), "-0.00", "0.00", 1) },
	"uuid":    func(int) string { return "01020304-0506-0708-090a-0b0c0d0e0f10" },
	"day":     func(i int) string { return time.Unix(-86400*int64(i), 0).UTC().Format(time.DateOnly) },
	"clock":   func(int) string { return "00:00:01.5" },
	"stamp":   func(i int) string { return time.UnixMilli(1893456000000 + int64(i)).UTC().Format(time.RFC3339Nano) },
	"nano":    func(i int) string { return time.Unix(0, int64(i)).UTC().Format(time.RFC3339Nano) },
	"old":     func(i int) string { return time.Unix(86400*int64(i), int64(i)).UTC().Format(time.RFC3339Nano) },
	"fixed":   func(int) string { return "abc" },
	"wide":    func(int) string { return "-0.2" },
	"local":   func(i int) string { return time.UnixMilli(int64(i)).UTC().Format("2006-01-02T15:04:05.999") },
}

// nullAt returns the text of row i, which is null if 3 divides its number.
func nullAt(i int, text string) string {
	if i%3 == 0 {
		return "-"
	}
	return text
}

const others = 700

// writeOthers writes rows; those whose number is 0 after division by 3 have nulls.
func writeOthers(t testing.TB, options ...parquet.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[other](&out, append(options, parquet.PageBufferSize(1<<12))...)
	for i := range others {
		row := other{Long: strings.Repeat("x", 100) + fmt.Sprint(i), Flag: i%2 == 1, Small: int32(-i), Big: ^uint64(i),
			Less:   ^uint32(i),
			Single: float32(i) / 10, Double: 1e300 * float64(i), Price: int64(-i), UUID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
				11, 12, 13, 14, 15, 16}, Day: int32(-i),
			Clock: 1500000, Stamp: time.UnixMilli(1893456000000 + int64(i)), Nano: int64(i), Old: deprecated.Int96{uint32(i), 0,
				uint32(2440588 + i)},
			Fixed: [3]byte{'a', 'b', 'c'}, Wide: [4]byte{255, 255, 255, 254}, Local: int64(i), List: []string{"l"}}
		text, name := fmt.Sprintf("t%d", i%5), fmt.Sprintf("n%d", i)
		if i%3 > 0 {
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
		for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd,
			&parquet.Lz4Raw, &parquet.Brotli} {
			b := writeOthers(t, parquet.DataPageVersion(version), parquet.Compression(codec))
			for name, want := range othersWant {
				got, err := readOthers(b, name)
				if err != nil || len(got) != others {
					t.Fatalf("version %d, %s, %s: %d rows: %v", version, codec, name, len(got), err)
				}
				for i, text := range got {
					if text != want(i) {
						t.Fatalf("version %d, %s, %s: row %d is %q, want %q", version, codec, name, i, text, want(i))
					}
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
