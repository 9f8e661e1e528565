//go:build lmdb

package clmdb

// #cgo LDFLAGS: -llmdb
// #include <stdlib.h>
// #include <string.h>
// #include <lmdb.h>
//
// static int backward(const MDB_val *a, const MDB_val *b) {
//     size_t n = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
//     int c = memcmp(b->mv_data, a->mv_data, n);
//     return c ? c : (a->mv_size < b->mv_size) - (a->mv_size > b->mv_size);
// }
//
// static int short_first(const MDB_val *a, const MDB_val *b) {
//     if (a->mv_size != b->mv_size) return a->mv_size < b->mv_size ? -1 : 1;
//     return memcmp(a->mv_data, b->mv_data, a->mv_size);
// }
//
// static int set_order(MDB_txn *txn, MDB_dbi dbi, int order) {
//     switch (order) {
//     case 1: return mdb_set_compare(txn, dbi, backward);
//     case 2: return mdb_set_compare(txn, dbi, short_first);
//     }
//     return 0;
// }
//
// static int put(MDB_txn *txn, MDB_dbi dbi, void *k, size_t kn, void *v, size_t vn) {
//     MDB_val key = {kn, k}, val = {vn, v};
//     return mdb_put(txn, dbi, &key, &val, 0);
// }
//
// static int del(MDB_txn *txn, MDB_dbi dbi, void *k, size_t kn) {
//     MDB_val key = {kn, k};
//     return mdb_del(txn, dbi, &key, NULL);
// }
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Order is how a database compares its keys.
type Order int

// Orders.
const (
	Bytewise Order = iota
	Backward
	ShortFirst
)

// Env is an open environment.
type Env struct{ env *C.MDB_env }

// Txn is a write transaction.
type Txn struct{ txn *C.MDB_txn }

// DB is an open database.
type DB C.MDB_dbi

func check(op string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", op, C.GoString(C.mdb_strerror(rc)))
}

// Open opens or makes the environment in dir, which must exist. writeMap is how Ardb opens it.
func Open(dir string, size int64, writeMap bool) (*Env, error) {
	e := new(Env)
	if err := check("create", C.mdb_env_create(&e.env)); err != nil {
		return nil, err
	}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	flags := C.uint(C.MDB_NOSYNC)
	if writeMap {
		flags |= C.MDB_NOMETASYNC | C.MDB_WRITEMAP | C.MDB_MAPASYNC
	}
	err := errors.Join(check("map size", C.mdb_env_set_mapsize(e.env, C.size_t(size))),
		check("max dbs", C.mdb_env_set_maxdbs(e.env, 1024)),
		check("open", C.mdb_env_open(e.env, path, flags, 0o644)))
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Close closes the environment.
func (e *Env) Close() { C.mdb_env_close(e.env) }

// Update runs f in a write transaction.
func (e *Env) Update(f func(*Txn) error) error {
	runtime.LockOSThread() // a write transaction belongs to its thread
	defer runtime.UnlockOSThread()
	t := new(Txn)
	if err := check("begin", C.mdb_txn_begin(e.env, nil, 0, &t.txn)); err != nil {
		return err
	}
	if err := f(t); err != nil {
		C.mdb_txn_abort(t.txn)
		return err
	}
	return check("commit", C.mdb_txn_commit(t.txn))
}

// DB opens or makes a database; dup gives it several values a key.
func (t *Txn) DB(name string, o Order, dup bool) (DB, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var dbi C.MDB_dbi
	flags := C.uint(C.MDB_CREATE)
	if dup {
		flags |= C.MDB_DUPSORT
	}
	if err := check("open database", C.mdb_dbi_open(t.txn, cname, flags, &dbi)); err != nil {
		return 0, err
	}
	return DB(dbi), check("set order", C.set_order(t.txn, dbi, C.int(o)))
}

func pointer(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Pointer(&b[0])
}

// Put sets a row.
func (t *Txn) Put(db DB, key, value []byte) error {
	return check("put", C.put(t.txn, C.MDB_dbi(db), pointer(key), C.size_t(len(key)), pointer(value), C.size_t(len(value))))
}

// Del removes a row and reports whether it was there.
func (t *Txn) Del(db DB, key []byte) (bool, error) {
	rc := C.del(t.txn, C.MDB_dbi(db), pointer(key), C.size_t(len(key)))
	if rc == C.MDB_NOTFOUND {
		return false, nil
	}
	return true, check("del", rc)
}

// Walk calls f with every row from MDB_FIRST to the end.
func (t *Txn) Walk(db DB, f func(key, value []byte) error) error {
	var c *C.MDB_cursor
	if err := check("cursor", C.mdb_cursor_open(t.txn, C.MDB_dbi(db), &c)); err != nil {
		return err
	}
	defer C.mdb_cursor_close(c)
	var k, v C.MDB_val
	for op := C.MDB_cursor_op(C.MDB_FIRST); ; op = C.MDB_NEXT {
		rc := C.mdb_cursor_get(c, &k, &v, op)
		if rc == C.MDB_NOTFOUND {
			return nil
		}
		if err := check("next", rc); err != nil {
			return err
		}
		if err := f(C.GoBytes(k.mv_data, C.int(k.mv_size)), C.GoBytes(v.mv_data, C.int(v.mv_size))); err != nil {
			return err
		}
	}
}
