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

// tail is what follows the end of an RDB file.
type tail struct {
	off  int64  // of the first byte that is not zero; the size of the file if there is none
	head []byte // what begins there
	size int64  // of everything behind the checksum
}

// tailHead is how much of a tail is looked at: as long as a replication mark, which is the longest that is known.
const tailHead = replicationMark

// replicationMark is the length of the mark that ends a diskless replication stream: hex digits. `redis-cli --rdb -` passes
// it on, because it cannot cut off its standard output.
const replicationMark = 40

// readTail looks at what lies between two offsets. Zeros are passed over: they pad files on block devices and tapes.
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
		if off += int64(n); err != nil {
			return tail{off: end, size: end - from}, ignoreEOF(err)
		}
	}
	return tail{off: end, size: end - from}, nil
}

// ignoreEOF drops the error of a file that became shorter.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// finding says what is wrong with the tail, or that nothing is. Another file and commands are data that is not read.
func (t *tail) finding() (severity record.Severity, detail string, ok bool) {
	switch {
	case t.size == 0, t.isMark():
		return 0, "", false
	case len(t.head) == 0:
		return record.Note, fmt.Sprintf("%s, all zero, after the end of the RDB file", record.Plural(t.size, "byte")), true
	case rdb.IsRDB(t.head):
		return record.Error, fmt.Sprintf("another RDB file (%.9s) begins after the end of the first; kvferry does not read it", t.head), true
	case isCommands(t.head):
		return record.Error, "commands of an append-only file follow the RDB file; name it aof: to read them", true
	}
	return record.Warning, fmt.Sprintf("%s after the end of the RDB file; kvferry does not read them", record.Plural(t.size, "byte")), true
}

// isMark reports whether the tail is the mark at the end of a replication stream.
func (t *tail) isMark() bool {
	return t.size == replicationMark && len(t.head) == replicationMark && len(bytes.Trim(t.head, "0123456789abcdef")) == 0
}

// isCommands reports whether an append-only file goes on like this: with a command, or an annotation of its time.
func isCommands(head []byte) bool {
	if bytes.HasPrefix(head, []byte("#TS:")) {
		return true
	}
	count, ok := bytes.CutPrefix(head, []byte("*"))
	digits := len(count) - len(bytes.TrimLeft(count, "0123456789"))
	return ok && digits > 0 && bytes.HasPrefix(count[digits:], []byte("\r\n$"))
}
