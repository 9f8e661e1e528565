package aof

import (
	"errors"
	"fmt"
	"os"

	"kvferry/record"
	"kvferry/redis/state"
)

// snapshot puts the RDB part at the front of a file into the state and returns where the commands begin.
func (r *replay) snapshot(f *os.File, size int64) (int64, error) {
	return 0, fmt.Errorf("%s: the RDB part of an append-only file is not read yet", r.file)
}

// restore decodes the payload of RESTORE.
func restore([]byte, func(*record.Header) *state.Put) error { return errors.ErrUnsupported }
