package kvrocks_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// smallOptions makes few small records.
var smallOptions = fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.RedisTypes,
	Short: true, MaxElements: 3, Expired: true}

// damaged returns some records and rows with most kinds of faults.
func damaged(t *testing.T, cluster bool) *formattest.Memory {
	t.Helper()
	m := formattest.NewMemory(t, kvrocks.New())
	dst := m.Create(t, format.CreateOptions{DBs: []string{smallOptions.DB}, Cluster: cluster, TempDir: t.TempDir(),
		Now: fixtures.Clock})
	fillShard(t, dst, 0, smallOptions.DB, 0, fixtures.Records(5, 12, smallOptions))
	if _, err := dst.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	slot := codec.NoSlot
	if cluster {
		slot = codec.Slot([]byte("k"))
	}
	key := codec.MetaKey{Namespace: nsName, Slot: slot, Key: []byte("k")}
	sub := func(s string) []byte {
		return codec.AppendSubKey(nil, codec.SubKey{Namespace: nsName, Slot: slot, Key: key.Key, Version: 7, Sub: []byte(s)})
	}
	r := rows{m.Store("db")}
	r.Put("metadata", codec.AppendMetaKey(nil, key),
		codec.AppendMeta(nil, codec.Meta{Wide: true, Kind: codec.KindZSet, Version: 7, Size: 2}))
	r.Put("default", sub("a"), codec.AppendDouble(nil, 1))
	r.Put("default", sub("b"), codec.AppendDouble(nil, 2))
	r.Put("zset_score", sub(double(3)+"a"), nil)
	key.Key, slot = []byte("gone"), codec.NoSlot
	if cluster {
		slot = codec.Slot(key.Key)
	}
	r.Put("stream", sub("x"), nil)
	r.Put("propagate", []byte("lua_f_x"), nil)
	r.Put("metadata", []byte("\xf0n"), nil)
	r.Put("default", codec.AppendNamespace(nil, "lost"), nil)
	return m
}

// readAll opens and reads everything, and returns the first error.
func readAll(m *formattest.Memory, f *formattest.Faults, e *format.Env) (err error) {
	src, err := kvrocks.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: f.Opener(m.FS)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	r, err := formattest.Walk(src.Records(context.Background(), smallOptions.DB, record.AllTypes, format.Span{}, e))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	elems := make([]record.Element, 1)
	for {
		if _, err := r.Next(); err != nil {
			return ended(err)
		}
		for err == nil {
			_, err = r.Read(elems)
		}
		if err = ended(err); err != nil {
			return err
		}
	}
}

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// TestReadErrors makes the store fail at every row of a damaged dataset: the error is returned, all is closed and no
// spool is left. (A place that cannot be looked up for a finding is left out.)
func TestReadErrors(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		m := damaged(t, cluster)
		for at := 1; ; at++ {
			f, temp := &formattest.Faults{Left: at}, t.TempDir()
			found, nowhere := 0, 0
			err := readAll(m, f, &format.Env{Now: fixtures.Clock, Memory: 400, TempDir: temp, Deep: true,
				Report: func(x record.Finding) {
					found++
					if x.Place.File == "" {
						nowhere++
					}
				}})
			if left, _ := os.ReadDir(temp); f.Open != 0 || len(left) > 0 {
				t.Fatalf("cluster %v, row %d: %d iterators left open, %v left", cluster, at, f.Open, left)
			}
			if f.Left > 0 {
				if err != nil || found < 4 || at < 50 {
					t.Errorf("cluster %v: %v without a failure, %d findings, %d rows", cluster, err, found, at)
				}
				break
			}
			if !errors.Is(err, formattest.ErrDisk) && nowhere == 0 {
				t.Errorf("cluster %v, row %d: %v", cluster, at, err)
			}
		}
	}
}

// TestWriteErrors makes the disk fail at every row: the error is returned and no files are left behind.
func TestWriteErrors(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		for at := 1; ; at++ {
			f, temp := &formattest.Faults{Left: at}, t.TempDir()
			err := writeAll(t, f, temp, cluster)
			if f.Left > 0 {
				if err != nil || at < 30 {
					t.Errorf("cluster %v: %v without a failure, %d rows", cluster, err, at)
				}
				break
			}
			if left, _ := os.ReadDir(temp); !errors.Is(err, formattest.ErrDisk) || len(left) > 0 {
				t.Fatalf("cluster %v, row %d: %v, %v left", cluster, at, err, left)
			}
		}
	}
}

func writeAll(t *testing.T, f *formattest.Faults, temp string, cluster bool) error {
	dst, err := kvrocks.New().Create(context.Background(), filepath.Join(temp, "new"),
		&format.CreateOptions{TempDir: temp, Create: f.Create,
			DBs: []string{smallOptions.DB}, Cluster: cluster, SST: !cluster})
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Abort()
	w, err := dst.Shard(0, smallOptions.DB, record.AllTypes, 4<<10)
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Pump(w, fixtures.Records(5, 8, smallOptions)); err != nil {
		w.Abort()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_, err = dst.Finish(context.Background())
	return err
}
