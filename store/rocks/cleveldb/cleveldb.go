//go:build leveldb

package cleveldb

// #cgo LDFLAGS: -lleveldb
// #include <stdint.h>
// #include <stdlib.h>
// #include <leveldb/c.h>
//
// extern int levelCompare(uintptr_t order, void *a, size_t an, void *b, size_t bn);
//
// typedef struct {
//     uintptr_t order;
//     char *name;
// } state;
//
// static int compare(void *st, const char *a, size_t an, const char *b, size_t bn) {
//     return levelCompare(((state *)st)->order, (void *)a, an, (void *)b, bn);
// }
//
// static const char *name(void *st) { return ((state *)st)->name; }
//
// static void destroy(void *st) {
//     free(((state *)st)->name);
//     free(st);
// }
//
// static leveldb_comparator_t *new_comparator(uintptr_t order, char *text) {
//     state *st = malloc(sizeof *st);
//     st->order = order;
//     st->name = text;
//     return leveldb_comparator_create(st, destroy, compare, name);
// }
//
// typedef struct {
//     const char *key, *value;
//     size_t keyLen, valueLen;
// } row;
//
// static void take(leveldb_iterator_t *it, row *r) {
//     r->key = NULL;
//     if (!leveldb_iter_valid(it)) return;
//     r->key = leveldb_iter_key(it, &r->keyLen);
//     r->value = leveldb_iter_value(it, &r->valueLen);
// }
//
// static void first(leveldb_iterator_t *it, row *r) {
//     leveldb_iter_seek_to_first(it);
//     take(it, r);
// }
//
// static void next(leveldb_iterator_t *it, row *r) {
//     leveldb_iter_next(it);
//     take(it, r);
// }
import "C"

import (
	"errors"
	"runtime/cgo"
	"unsafe"

	"kvferry/store"
)

//export levelCompare
func levelCompare(order C.uintptr_t, a unsafe.Pointer, an C.size_t, b unsafe.Pointer, bn C.size_t) C.int {
	compare := cgo.Handle(order).Value().(func(a, b []byte) int)
	return C.int(compare(unsafe.Slice((*byte)(a), int(an)), unsafe.Slice((*byte)(b), int(bn))))
}

// settings are LevelDB's options and the objects that they refer to.
type settings struct {
	options *C.leveldb_options_t
	filter  *C.leveldb_filterpolicy_t
	order   *C.leveldb_comparator_t
	compare cgo.Handle
	read    *C.leveldb_readoptions_t
	write   *C.leveldb_writeoptions_t
}

// newSettings has everything checked, a Bloom filter, and buffers and tables of size bytes.
func newSettings(c store.Comparer, size int) *settings {
	s := &settings{options: C.leveldb_options_create(), filter: C.leveldb_filterpolicy_create_bloom(10),
		read: C.leveldb_readoptions_create(), write: C.leveldb_writeoptions_create()}
	if !c.IsBytewise() {
		s.compare = cgo.NewHandle(c.Compare)
		s.order = C.new_comparator(C.uintptr_t(s.compare), C.CString(c.Name))
		C.leveldb_options_set_comparator(s.options, s.order)
	}
	C.leveldb_options_set_filter_policy(s.options, s.filter)
	C.leveldb_options_set_paranoid_checks(s.options, 1)
	C.leveldb_options_set_write_buffer_size(s.options, C.size_t(size))
	C.leveldb_options_set_max_file_size(s.options, C.size_t(size))
	C.leveldb_readoptions_set_verify_checksums(s.read, 1)
	return s
}

func (s *settings) destroy() {
	C.leveldb_options_destroy(s.options)
	C.leveldb_filterpolicy_destroy(s.filter)
	C.leveldb_readoptions_destroy(s.read)
	C.leveldb_writeoptions_destroy(s.write)
	if s.order != nil {
		C.leveldb_comparator_destroy(s.order)
		s.compare.Delete()
	}
}

// failure takes the message that LevelDB left.
func failure(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.leveldb_free(unsafe.Pointer(text))
	return errors.New(C.GoString(text))
}

// Repair runs RepairDB: it rebuilds the MANIFEST from the tables and logs.
func Repair(dir string, c store.Comparer, size int) error {
	s := newSettings(c, size)
	defer s.destroy()
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var text *C.char
	C.leveldb_repair_db(s.options, path, &text)
	return failure(text)
}

// DB is an open database.
type DB struct {
	db *C.leveldb_t
	s  *settings
}

// Snapshot is a state of a database; nil is the newest.
type Snapshot C.leveldb_snapshot_t

// Open opens a database that exists.
func Open(dir string, c store.Comparer, size int) (*DB, error) {
	d := &DB{s: newSettings(c, size)}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var text *C.char
	d.db = C.leveldb_open(d.s.options, path, &text)
	if err := failure(text); err != nil {
		d.s.destroy()
		return nil, err
	}
	return d, nil
}

// Close closes the database.
func (d *DB) Close() {
	C.leveldb_close(d.db)
	d.s.destroy()
}

func pointer(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// Put sets a row.
func (d *DB) Put(key, value []byte) error {
	var text *C.char
	C.leveldb_put(d.db, d.s.write, pointer(key), C.size_t(len(key)), pointer(value), C.size_t(len(value)), &text)
	return failure(text)
}

// Delete deletes a row.
func (d *DB) Delete(key []byte) error {
	var text *C.char
	C.leveldb_delete(d.db, d.s.write, pointer(key), C.size_t(len(key)), &text)
	return failure(text)
}

// Get looks a key up; ok is true if it exists.
func (d *DB) Get(key []byte) (value []byte, ok bool, err error) {
	var text *C.char
	var n C.size_t
	v := C.leveldb_get(d.db, d.s.read, pointer(key), C.size_t(len(key)), &n, &text)
	if err := failure(text); err != nil || v == nil {
		return nil, false, err
	}
	defer C.leveldb_free(unsafe.Pointer(v))
	return C.GoBytes(unsafe.Pointer(v), C.int(n)), true, nil
}

// Compact rewrites all tables.
func (d *DB) Compact() { C.leveldb_compact_range(d.db, nil, 0, nil, 0) }

// Snapshot holds the present state until Release.
func (d *DB) Snapshot() *Snapshot { return (*Snapshot)(C.leveldb_create_snapshot(d.db)) }

// Release lets a snapshot go.
func (d *DB) Release(s *Snapshot) { C.leveldb_release_snapshot(d.db, (*C.leveldb_snapshot_t)(s)) }

// Walk calls f with every row of a snapshot, in order. The bytes are f's until it returns.
func (d *DB) Walk(s *Snapshot, f func(key, value []byte)) error {
	C.leveldb_readoptions_set_snapshot(d.s.read, (*C.leveldb_snapshot_t)(s))
	defer C.leveldb_readoptions_set_snapshot(d.s.read, nil)
	it := C.leveldb_create_iterator(d.db, d.s.read)
	defer C.leveldb_iter_destroy(it)
	var r C.row
	for C.first(it, &r); r.key != nil; C.next(it, &r) {
		f(unsafe.Slice((*byte)(unsafe.Pointer(r.key)), int(r.keyLen)),
			unsafe.Slice((*byte)(unsafe.Pointer(r.value)), int(r.valueLen)))
	}
	var text *C.char
	C.leveldb_iter_get_error(it, &text)
	return failure(text)
}
