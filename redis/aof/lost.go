package aof

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// appendLost appends the reason why the value of a key is lost, as stored in the state:
//
//	+---------------+-----+--------+
//	| offset (LE64) | why | 0 file |
//	+---------------+-----+--------+
//
// off is the offset of the command that caused it in the file.
func appendLost(dst []byte, file string, off int64, why string) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(off))
	return append(append(append(dst, why...), 0), file...)
}

func decodeLost(b []byte) (file string, off int64, why string) {
	i := bytes.LastIndexByte(b, 0)
	return string(b[i+1:]), int64(binary.LittleEndian.Uint64(b)), string(b[8:i])
}

// lost reports the keys with unknown values at the end of the log: written by a command of unknown effect, or by a
// command that read such a key, and not overwritten or deleted since.
func (r *replay) lost() error {
	var first *CommandError
	r.server.DB.EachLost(func(db int, key, reason []byte) {
		file, off, why := decodeLost(reason)
		if !r.salvage {
			if first == nil {
				first = &CommandError{File: disk.Join(r.log.Dir, file), Off: off, Why: why, Key: bytes.Clone(key)}
			}
			first.Keys++
			return
		}
		if r.report != nil {
			r.report(record.Finding{Kind: FindCommand, Severity: record.Error, DB: strconv.Itoa(db), Key: bytes.Clone(key),
				Place: record.Place{File: file, Off: off, Level: -1}, Detail: why + "; the value of the key is not known since, and left out"})
		}
	})
	if first != nil {
		return first
	}
	return r.server.DB.Err()
}
