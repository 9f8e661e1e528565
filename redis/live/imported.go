package live

import (
	"io"

	"kvferry/internal/shared/keyslot"
	"kvferry/internal/sys/disk"
	"kvferry/redis/rdb"
)

// dropImported removes the keys of an atomic slot migration of Valkey 9 from the last part, which the importing server
// hides from clients. The server that exports these slots sends the keys as well.
func (c *copier) dropImported(from mark) (err error) {
	if err := c.to.w.Flush(); err != nil {
		return err
	}
	kept, dropped := c.withoutImported(from)
	if !dropped {
		return nil
	}
	part, err := disk.Temp(c.options.Options.TempDir, "live")
	if err != nil {
		return err
	}
	defer part.Close()
	for _, r := range kept {
		if _, err := io.Copy(part, io.NewSectionReader(c.to.f, r[0], r[1]-r[0])); err != nil {
			return err
		}
	}
	if err := c.to.back(from); err != nil {
		return err
	}
	if _, err = part.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(c.to, part)
	}
	return err
}

// withoutImported returns the ranges of the last part without slots that the server was importing, and whether there are
// such slots. The list of the slots precedes the keys. A damaged part stays as it is.
func (c *copier) withoutImported(from mark) (kept [][2]int64, dropped bool) {
	var slots keyslot.Ranges
	s := rdb.Section(c.to.f, c.to.head, 0, from.n, c.to.n)
	for {
		it, err := s.Next()
		if err != nil {
			return kept, err == io.EOF && len(slots) > 0
		}
		switch {
		case it.Op == rdb.OpSlotImport:
			slots = append(slots, it.Slots...)
			continue
		case it.Op == rdb.OpKey && len(slots) == 0:
			return nil, false
		}
		switch n := len(kept); {
		case it.Op == rdb.OpKey && slots.Have(it.Key):
		case n > 0 && kept[n-1][1] == it.Off:
			kept[n-1][1] = s.Offset()
		default:
			kept = append(kept, [2]int64{it.Off, s.Offset()})
		}
	}
}
