package formattest

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what tests find to files in testdata")

// CheckOutcomes compares a text with a file in testdata, paragraph by paragraph. With -update the file is written: read what
// changes in it before you commit it.
func CheckOutcomes(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(data), "\n\n")
	for i, text := range strings.Split(got, "\n\n") {
		if i >= len(want) || text != want[i] {
			t.Fatalf("got\n%s\nwant\n%s\n(-update writes %s: read what changes there)", text, want[min(i, len(want)-1)], file)
		}
	}
	if n := strings.Count(got, "\n\n") + 1; n != len(want) {
		t.Errorf("%s has %d paragraphs, want %d", file, len(want), n)
	}
}

// Damaged sums up, in one line, what is said of bytes that are cut anywhere, longer by one, or have any byte changed: the sum changes with
// a message, an offset or a bound.
func Damaged(b []byte, say func([]byte) string) string {
	cut, changed := crc32.NewIEEE(), crc32.NewIEEE()
	for i := range b {
		io.WriteString(cut, say(b[:i:i])+"\n")
		for _, x := range []byte{0x01, 0x80, 0xff} {
			other := bytes.Clone(b)
			other[i] ^= x
			io.WriteString(changed, say(other)+"\n")
		}
	}
	io.WriteString(cut, say(append(bytes.Clone(b), 0)))
	return fmt.Sprintf("cut or longer %08x, changed %08x", cut.Sum32(), changed.Sum32())
}
