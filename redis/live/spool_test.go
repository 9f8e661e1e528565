package live

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"kvferry/format"
	files "kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// TestSpoolChecksum: a copy that changes before it is read has the wrong checksum, also after parts of it were taken
// back or blanked.
func TestSpoolChecksum(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		add := func(items string) {
			body := rdb.AppendEOF([]byte("REDIS0011" + items))
			p := newPart(to)
			_, err := p.Write(binary.LittleEndian.AppendUint64(body, crc64.Update(0, body)))
			if err = errors.Join(err, p.end()); err != nil {
				t.Fatal(err)
			}
		}
		add("\xfe\x00")
		blank := to.n
		add("\xf5\x40\x40" + strings.Repeat("f", 64))
		err = to.w.Flush()
		if err := errors.Join(err, to.blank(blank, to.n)); err != nil {
			t.Fatal(err)
		}
		kept := to.mark
		add("\x00\x01a\x05other")
		if err := to.back(kept); err != nil {
			t.Fatal(err)
		}
		add("\x00\x01k\x05value")
		if err := to.finish(); err != nil {
			t.Fatal(err)
		}
		if damaged {
			if _, err := to.f.WriteAt([]byte("V"), kept.n+4); err != nil {
				t.Fatal(err)
			}
		}
		src, err := files.OpenFile(t.Context(), New(), "spool", to.f,
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
		if (err != nil) != damaged || err != nil && !strings.Contains(err.Error(), "checksum") {
			t.Errorf("damaged %t: %v", damaged, err)
		}
		if err != nil {
			continue
		}
		if got := records(t, src); len(got) != 1 || string(got[0].elems[0].Value) != "value" {
			t.Errorf("%+v", got)
		}
		src.Close()
	}
}
