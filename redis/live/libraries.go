package live

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// libraryOf is the hash of a function library and the server it was first read from.
type libraryOf struct {
	host string
	sum  [sha256.Size]byte
}

// onlyOnce blanks out function libraries that an earlier master of a cluster has sent too: each master has a copy,
// before its databases. If the code of a library differs between masters, the first copy wins.
func (c *copier) onlyOnce() error {
	if len(c.parts) < 2 {
		return nil
	}
	if err := c.to.w.Flush(); err != nil {
		return err
	}
	known := map[string]libraryOf{}
	for _, p := range c.parts {
		if err := c.librariesOf(p, known); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) librariesOf(p sent, known map[string]libraryOf) error {
	scanner := rdb.Section(c.to.f, c.to.head, 0, p.from, c.to.n)
	for {
		it, err := scanner.Next()
		if disk.IsAccess(err) {
			return err
		}
		if err != nil || it.Op != rdb.OpFunction && it.Op != rdb.OpAux && it.Op != rdb.OpModuleAux {
			return nil // reading the spool finds and reports the damage
		}
		if it.Op != rdb.OpFunction {
			continue
		}
		name, lib := rdb.LibraryName(it.Value), libraryOf{p.host, sha256.Sum256(it.Value)}
		first, ok := known[name]
		if !ok {
			known[name] = lib
			continue
		}
		if first.sum != lib.sum {
			dataset.Report(c.options, record.Finding{Kind: FindLibraryDiffers, Severity: record.Error,
				Place: record.InFile(c.server.Shown),
				Detail: fmt.Sprintf("function library %s has other code on %s than on %s, whose code kvferry reads",
					record.Quote([]byte(name)), lib.host, first.host)})
		}
		if err := c.to.blank(it.Off, scanner.Offset()); err != nil {
			return err
		}
	}
}

// longString starts a string whose length takes 4 bytes, big-endian, in an RDB file.
const longString = 0x80

// blank overwrites an item with an AUX field without a name, which readers ignore.
//
//	AUX opcode | 0: no name | length of the rest | zeros
func (s *spool) blank(from, to int64) error {
	head := append([]byte{0xFA, 0}, longString)
	n := to - from - int64(len(head)) - 4
	if n < 0 {
		return fmt.Errorf("a function library of %s bytes", record.Number(to-from)) // a library's first line alone is longer
	}
	item := append(binary.BigEndian.AppendUint32(head, uint32(n)), bytes.Repeat([]byte{0}, int(n))...)
	old := make([]byte, len(item))
	if _, _, err := disk.ReadAt(s.f, old, from); err != nil {
		return err
	}
	return s.replace(old, item, from)
}
