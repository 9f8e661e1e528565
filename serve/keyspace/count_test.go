package keyspace_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/serve/keyspace"
	"kvferry/store"
)

// hooked is a source whose readers call before with the number of batches they have returned.
type hooked struct {
	format.Source
	before func(batches int) error
}

type hookedReader struct {
	record.Reader
	before func(batches int) error
	n      int
}

func (s hooked) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	r, err := s.Source.Records(ctx, db, t, span, e)
	return &hookedReader{Reader: r, before: s.before}, err
}

// Split makes two spans at most, so that one has several batches.
func (s hooked) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	return s.Source.Split(db, t, min(n, 2))
}

func (s hooked) Close() error { return nil }

func (r *hookedReader) Next() (*record.Batch, error) {
	if err := r.before(r.n); err != nil {
		return nil, err
	}
	r.n++
	return r.Reader.Next()
}

// hook opens a keyspace of n strings whose readers call before.
func hook(t *testing.T, f format.Format, n int, before func(batches int) error) (*keyspace.Keyspace, format.Source) {
	t.Helper()
	m := formattest.NewMemory(t, f)
	var records []record.Reader
	for _, key := range some("k", n) {
		records = append(records, record.Gather(put(record.String, key, "v"), nil))
	}
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir(), Version: 1, DBs: []string{"0"}, Now: fixtures.Clock})
	src := formattest.Fill(t, dst, 1<<20, func(types record.TypeSet) record.Reader {
		if !types.Has(record.String) {
			return record.Merge()
		}
		return record.Merge(records...)
	})
	k, err := keyspace.New(t.Context(), &inspect.Scan{Source: hooked{src, before}, Now: fixtures.Clock, Memory: 16 << 20, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, src
}

// listed returns the keys of a scan.
func listed(t *testing.T, k *keyspace.Keyspace) (keys []string) {
	t.Helper()
	s, err := k.Scan(t.Context(), k.Databases()[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		h, err := s.Next()
		if err == io.EOF {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(h.Key))
	}
}

// TestBehindDamage: a block that cannot be read behind keys already listed or counted costs none of them, and none comes
// twice.
func TestBehindDamage(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), kvrocks.New()} {
		const n = 10 * record.BatchLen
		for _, at := range []int{0, 1, 3} {
			for _, count := range []bool{true, false} {
				k, src := hook(t, f, n, func(batches int) error {
					if batches == at {
						return &store.BlockError{Err: errors.New("a damaged block")}
					}
					return nil
				})
				opened := 0
				k.Reopen = func(_ context.Context, how inspect.Opening) (format.Source, error) {
					if opened++; !how.Salvage {
						t.Error("it is opened without Salvage")
					}
					return hooked{src, func(int) error { return nil }}, nil
				}
				if !count {
					if keys := listed(t, k); strings.Join(keys, " ") != strings.Join(some("k", n), " ") {
						t.Errorf("%s: damage after %d batches: %d keys are listed, want %d", f.Name(), at, len(keys), n)
					}
				}
				if got, err := k.Exact(t.Context(), k.Databases()[0]); got.Keys != n || !got.Exact || err != nil || opened != 1 {
					t.Errorf("%s: damage after %d batches: %+v keys, want %d; it was opened %d times (%v)", f.Name(), at, got, n, opened, err)
				}
			}
		}
	}
}

// TestExact: DBSIZE is exact or an error, while the keys are counted, after a count that failed, and after a scan of all
// keys.
func TestExact(t *testing.T) {
	const n = 5000
	var mu sync.Mutex
	hold, failure := make(chan struct{}), error(nil)
	k, _ := hook(t, blackwidow.New(), n, func(batches int) error {
		if batches == 2 {
			<-hold
		}
		mu.Lock()
		defer mu.Unlock()
		return failure
	})
	do := doer(t, k)
	k.Patient(time.Nanosecond)
	got := do("DBSIZE")
	if !strings.HasPrefix(got, "-LOADING kvferry is counting the keys, about ") || !strings.HasSuffix(got, ": ask again\r\n") {
		t.Errorf("%q while keys are counted", got)
	}
	mu.Lock()
	failure = errors.New("input/output error")
	mu.Unlock()
	close(hold)
	k.Patient(time.Minute)
	for range 2 {
		if got := do("DBSIZE"); got != "-ERR input/output error\r\n" {
			t.Errorf("%q after an error", got)
		}
	}
	if line := do("INFO keyspace"); !strings.Contains(line, "estimated=1") {
		t.Error(line)
	}
	mu.Lock()
	failure = nil
	mu.Unlock()
	if got := do("DBSIZE"); got != ":5000\r\n" {
		t.Errorf("%q, want 5000", got)
	}
	if line := do("INFO keyspace"); !strings.Contains(line, "db0:keys=5000,expires=0,avg_ttl=0\r\n") {
		t.Error(line)
	}
	if got := do("SELECT 3") + do("DBSIZE"); got != "+OK\r\n:0\r\n" {
		t.Errorf("%q in a database without keys", got)
	}
}

// TestScannedCount: a scan of all keys leaves their number, and nothing is counted again.
func TestScannedCount(t *testing.T) {
	const n = 300
	var mu sync.Mutex
	open := true
	k, _ := hook(t, kvrocks.New(), n, func(int) error {
		mu.Lock()
		defer mu.Unlock()
		if !open {
			return errors.New("it is read again")
		}
		return nil
	})
	do := doer(t, k)
	if got := do("KEYS *"); !strings.HasPrefix(got, "*300\r\n") {
		t.Errorf("%.100q", got)
	}
	mu.Lock()
	open = false
	mu.Unlock()
	if got := do("DBSIZE"); got != ":300\r\n" {
		t.Errorf("%q, want 300", got)
	}
}
