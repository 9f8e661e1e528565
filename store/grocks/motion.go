//go:build rocksdb

package grocks

// #cgo CXXFLAGS: -std=c++17 -O0 -g0
// #include <stdlib.h>
// #include "compare.h"
// #include "motion.h"
import "C"

import (
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// motionFamily is a column family and the rows that it should have, as motion.h draws them.
type motionFamily struct {
	name  string
	order string // name of the comparator
	rows  []byte
}

// move lets RocksDB put a database through a motion: in a second, the changes that an engine makes in years. It returns
// an error for rows that are wrong afterwards.
func move(dir, scratch, motion string, rule int, seed uint32, now time.Time, families []motionFamily) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	free := func(s *C.char) { C.free(unsafe.Pointer(s)) }
	fs := make([]C.kvf_family, len(families))
	for i, f := range families {
		name := C.CString(f.name)
		defer free(name)
		which, ok := native[f.order]
		if !ok {
			which = -1
		}
		fs[i] = C.kvf_family{name: name, order: which, len: C.size_t(len(f.rows))}
		if len(f.rows) > 0 {
			pin.Pin(&f.rows[0])
			fs[i].rows = (*C.char)(unsafe.Pointer(&f.rows[0]))
		}
	}
	d, s, m := C.CString(dir), C.CString(scratch), C.CString(motion)
	defer free(d)
	defer free(s)
	defer free(m)
	text := C.kvf_motion(d, s, m, C.int(rule), C.uint(seed), C.long(now.Unix()), &fs[0], C.size_t(len(fs)))
	if text == nil {
		return nil
	}
	defer free(text)
	return errors.New(C.GoString(text))
}
