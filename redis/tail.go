package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// tail describes the data after the end of an RDB file.
type tail struct {
	off  int64  // of the first nonzero byte; the file size if all are zero
	head []byte // bytes at off
	size int64  // bytes after the checksum
}

// tailHead limits the inspected bytes: the length of a replication mark, the longest known tail.
const tailHead = replicationMark

// replicationMark is the length of the mark that ends a diskless replication stream: hex digits. `redis-cli --rdb -`
// passes it on, because it cannot truncate its standard output.
const replicationMark = 40

// readTail inspects the bytes between two offsets. It skips zeros: they pad files on block devices and tapes.
func readTail(ctx context.Context, f *disk.File, from, end int64) (tail, error) {
	buf := make([]byte, min(end-from, 256<<10))
	for off := from; off < end; {
		if ctx.Err() != nil {
			return tail{}, context.Cause(ctx)
		}
		n, _, err := disk.ReadAt(f, buf[:min(int64(len(buf)), end-off)], off)
		if rest := bytes.TrimLeft(buf[:n], "\x00"); len(rest) > 0 {
			t := tail{off: off + int64(n-len(rest)), size: end - from}
			t.head = make([]byte, min(tailHead, end-t.off)) // not of buf, which is large
			_, _, err = disk.ReadAt(f, t.head, t.off)
			return t, ignoreEOF(err)
		}
		off += int64(n)
		if err != nil {
			return tail{off: end, size: end - from}, ignoreEOF(err)
		}
	}
	return tail{off: end, size: end - from}, nil
}

// ignoreEOF ignores the error of a file that was truncated.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// finding describes a problem of the tail, if any. Another RDB file, or commands, are data that kvferry does not read.
func (t *tail) finding() (severity record.Severity, detail string, ok bool) {
	switch {
	case t.size == 0, t.isMark():
		return 0, "", false
	case len(t.head) == 0:
		return record.Note, fmt.Sprintf("%s, all zero, after the end of the RDB file", record.Count(t.size, "byte")), true
	case rdb.IsRDB(t.head):
		return record.Error, fmt.Sprintf("another RDB file (%.9s) begins after the end of the first; kvferry does not read it",
			t.head), true
	case isCommands(t.head):
		return record.Error, "commands of an append-only file follow the RDB file; name it aof: to read them", true
	}
	return record.Warning, fmt.Sprintf("%s after the end of the RDB file; kvferry does not read them",
		record.Count(t.size, "byte")), true
}

// isMark reports whether the tail is the mark at the end of a replication stream.
func (t *tail) isMark() bool {
	return t.size == replicationMark && len(t.head) == replicationMark && len(bytes.Trim(t.head, "0123456789abcdef")) == 0
}

// isCommands reports whether an append-only file continues here: with a command or a timestamp annotation.
func isCommands(head []byte) bool {
	if bytes.HasPrefix(head, []byte("#TS:")) {
		return true
	}
	count, ok := bytes.CutPrefix(head, []byte("*"))
	digits := len(count) - len(bytes.TrimLeft(count, "0123456789"))
	return ok && digits > 0 && bytes.HasPrefix(count[digits:], []byte("\r\n$"))
}
