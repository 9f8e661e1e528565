package rocks

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/manifest"
)

// checksums compares files with their checksums in the MANIFEST, if an engine wrote any. They cover the bytes outside
// of blocks and detect a foreign file of the same name.
type checksums struct {
	db *database
	// unknown holds the functions already reported as unknown.
	unknown map[string]bool
}

// sumWindow is the size of a read.
const sumWindow = 1 << 20

// check compares one file. Unreadable bytes are reported by the row reader.
func (c *checksums) check(ctx context.Context, ks *family, f *files.File, name string, want manifest.Checksum) error {
	if want.Func == "" {
		return nil
	}
	at := record.InFile(name)
	if want.Func != manifest.ChecksumCRC32C {
		if !c.unknown[want.Func] {
			c.unknown[want.Func] = true
			c.db.report(record.Finding{Kind: record.FindFileChecksum, Severity: record.Note, Keyspace: ks.Name(), Place: at,
				Detail: fmt.Sprintf("the MANIFEST has checksums of whole files by the function %s, which is unknown here: they are not compared",
					record.Quote([]byte(want.Func)))})
		}
		return nil
	}
	sum, err := sumOf(ctx, f)
	if base.IsDamage(err) {
		return nil
	}
	if has := binary.BigEndian.AppendUint32(nil, sum); err == nil && string(has) != string(want.Value) {
		c.db.report(record.Finding{Kind: record.FindFileChecksum, Severity: record.Error, Keyspace: ks.Name(), Place: at,
			Detail: fmt.Sprintf("the checksum of the file is %x, but %x in the MANIFEST: the file was changed or replaced",
				has, want.Value)})
	}
	return err
}

// sumOf returns the CRC-32C of a whole file.
func sumOf(ctx context.Context, f *files.File) (sum uint32, err error) {
	buf := make([]byte, min(sumWindow, f.Size))
	for off := int64(0); off < f.Size; off += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		buf = buf[:min(int64(len(buf)), f.Size-off)]
		if err := f.ReadFull(buf, off); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, base.Castagnoli, buf)
	}
	return sum, nil
}
