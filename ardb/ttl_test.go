package ardb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/internal/testkit/memstore"
	"kvferry/store"
)

// TestUnopened: a missing directory is reported as missing; for an existing one the error is kept.
func TestUnopened(t *testing.T) {
	dir, cause := t.TempDir(), errors.New("cause")
	home := filepath.Join(dir, kindLevelDB)
	if err := unopenedError(cause, dir, home, kindLevelDB); !errors.Is(err, store.ErrNotStore) || !strings.Contains(err.Error(), "want a directory leveldb in it") {
		t.Errorf("nothing there: %v", err)
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unopenedError(cause, dir, home, kindLevelDB); !errors.Is(err, cause) || errors.Is(err, store.ErrNotStore) {
		t.Errorf("there: %v", err)
	}
}

// refusing is a builder whose runs cannot be started, or accept no rows.
type refusing struct {
	store.Builder
	begun   bool
	aborted int
}

func (b *refusing) Run(string, int, uint64) (store.Run, error) {
	if !b.begun {
		return nil, errFail
	}
	return &refusingRun{b: b}, nil
}

type refusingRun struct {
	store.Run
	b *refusing
}

func (r *refusingRun) Append(_, _ []byte) error { return errFail }
func (r *refusingRun) Abort()                   { r.b.aborted++ }

// TestWriteTTL: the rows of all shards are one run in the order of LevelDB.
func TestWriteTTL(t *testing.T) {
	ctx, root := context.Background(), t.TempDir()
	o := ttlOptions(1<<20, root)
	index := codec.AppendText(nil, []byte(codec.TTLNamespace))
	key := func(ms int64) []byte { return codec.AppendTTLKey(nil, index, ms, text("0"), []byte("k")) }
	st := memstore.New().Dir("d")
	if err := st.Keyspace(defaultCF, codec.LevelDBComparer()); err != nil {
		t.Fatal(err)
	}
	ttl := dataset.NewRowFiles(root, "ttl")
	if err := writeTTL(ctx, ttl, st, o); err != nil || st.Len(defaultCF) != 0 {
		t.Errorf("of no rows: %d, %v", st.Len(defaultCF), err)
	}
	const each = 600
	for shard := range 2 {
		rows := extsort.New(o)
		for i := range int64(each) {
			if err := rows.Add(0, key(1000-2*i+int64(shard)), []byte{byte(codec.KindTTL), 0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(ttl.Save(shard, rows), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := writeTTL(canceled, ttl, st, o); !errors.Is(err, context.Canceled) || st.Len(defaultCF) != 0 {
		t.Errorf("canceled: %d rows, %v", st.Len(defaultCF), err)
	}
	for _, b := range []*refusing{{}, {begun: true}} {
		if err := writeTTL(ctx, ttl, b, o); !errors.Is(err, errFail) || (b.aborted == 1) != b.begun {
			t.Errorf("refused, begun %t: aborted %d times, %v", b.begun, b.aborted, err)
		}
	}
	if err := errors.Join(writeTTL(ctx, ttl, st, o), st.Finish()); err != nil || st.Len(defaultCF) != 2*each {
		t.Fatalf("%d rows, %v", st.Len(defaultCF), err)
	}
	for _, ms := range []int64{1001, 1000, -198, -197} {
		if v := st.Get(defaultCF, key(ms)); len(v) != 2 || codec.Kind(v[0]) != codec.KindTTL {
			t.Errorf("expiry %d: %x", ms, v)
		}
	}
}

// short is a keyspace whose samples include strings that are no keys.
type short struct {
	store.Keyspace
	asked int
}

func (s *short) Sample(n int) ([]store.Weighted, error) {
	s.asked = n
	if n < 0 {
		return nil, errFail
	}
	return []store.Weighted{{Key: codec.AppendKey(nil, nil, []byte("k"), codec.KindMeta), Bytes: 7}, {Key: []byte{9}, Bytes: 1}},
		nil
}

// TestWeigh: samples are user keys without malformed ones, and parts of a keyspace request more samples.
func TestWeigh(t *testing.T) {
	ks := &short{}
	sp := &space{Keyspace: ks}
	if keys, err := sp.Weigh(3, 4); err != nil || ks.asked != 3 || len(keys) != 1 || string(keys[0].Key) != "k" ||
		keys[0].Bytes != 7 {
		t.Errorf("%v of %d, %v", keys, ks.asked, err)
	}
	if _, err := sp.Weigh(-1, 1); !errors.Is(err, errFail) {
		t.Errorf("failing: %v", err)
	}
	found, err := findSpaces(namespaced(t, text("0"), text("1")))
	if err != nil || len(found) != 2 {
		t.Fatalf("%q, %v", dbs(found), err)
	}
	for _, sp := range found {
		if keys, err := sp.Weigh(1, 2); err != nil || len(keys) != 1 || string(keys[0].Key) != "k" {
			t.Errorf("%s: %v, %v", sp.DB, keys, err)
		}
	}
}
