package kvrocks

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/kvrocks/codec"
	"kvferry/store"
)

var space = codec.Space{Namespace: []byte("n"), Slotted: true}

// texts reads rows: their user keys, or whole raw keys if they have none.
func texts(it store.Iterator, err error) (string, error) {
	var out []string
	for err == nil {
		var raw []byte
		if raw, _, err = it.Next(); err != nil {
			break
		}
		text := string(raw)
		if k, err := codec.DecodeSubKey(raw, true); err == nil {
			text = string(k.Key)
		} else if k, err := codec.DecodeMetaKey(raw, true); err == nil {
			text = string(k.Key)
		}
		out = append(out, text)
	}
	if it != nil {
		err = errors.Join(err, it.Close())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.Join(out, " "), err
}

// TestRows writes rows of two shards, in the order of slots, and reads spans of user keys, metadata by slot, length and
// key, rows without their key's slot first. The disk fails at every row once.
func TestRows(t *testing.T) {
	keys := []string{"{t}z", "{t}ab", "{t}b", "x"} // slot(x) > slot(t)
	if codec.Slot([]byte("x")) < codec.Slot([]byte("t")) {
		t.Fatal("the keys are in another order")
	}
	run := func(f *formattest.Faults) error {
		fs, temp := memstore.New(), t.TempDir()
		b, err := f.Create("d", store.BuildOptions{})
		if err != nil {
			return err
		}
		rows := extsort.New(extsort.Options{TempDir: temp})
		defer rows.Close()
		for _, family := range []string{codec.FamilyDefault, codec.FamilyMetadata} {
			run, err := (&clusterBuilder{Builder: b, Rows: rows}).Run(family, 0, 0)
			if err = errors.Join(err, b.Keyspace(family, store.Bytewise)); err != nil {
				return err
			}
			for _, key := range keys {
				raw := space.AppendMetaKey(nil, []byte(key))
				if family == codec.FamilyDefault {
					raw = space.AppendVersion(nil, []byte(key), 1)
				}
				fs.Dir("d").Put(family, raw, nil)
				if err := run.Append(raw, nil); err != nil {
					return err
				}
			}
			if err := run.Close(); err != nil {
				return err
			}
		}
		if err := dataset.WriteRuns(context.Background(), b, 0, rows, clusterPlace); err != nil {
			return err
		}
		for _, raw := range []string{"\x01n", "\x01n\x00\x07slot7"} { // without a slot, with another
			fs.Dir("d").Put(codec.FamilyMetadata, []byte(raw), nil)
		}
		st, err := f.Opener(fs)(context.Background(), "d", nil)
		if err != nil {
			return err
		}
		families := map[string]store.Keyspace{}
		for _, ks := range st.Keyspaces() {
			families[ks.Name()] = ks
		}
		if yes, err := detectCluster(families[codec.FamilyMetadata]); err != nil || !yes {
			return errors.Join(err, errOther)
		}
		order := clusterOrder(space)
		for _, c := range []struct{ lo, hi, metas, rows string }{
			{"", "", "\x01n slot7 {t}b {t}z {t}ab x", "{t}b {t}z {t}ab x"},
			{"{t}b", "", "{t}b {t}z", "{t}b {t}z"},
			{"", "{t}b", "\x01n slot7 {t}ab x", "{t}ab x"},
			{"{t}b", "{t}c", "{t}b", "{t}b"},
		} {
			var span format.Span
			if c.lo != "" {
				span.Lo = []byte(c.lo)
			}
			if c.hi != "" {
				span.Hi = []byte(c.hi)
			}
			got, err := texts(openClusterMetas(space)(families[codec.FamilyMetadata], span, &format.Env{TempDir: temp}, 1<<20))
			if err != nil {
				return err
			}
			if got != c.metas {
				t.Errorf("metadata from %q to %q: %q, want %q", c.lo, c.hi, got, c.metas)
			}
			if got, err = texts(order.Open(families[codec.FamilyDefault], span)); err != nil {
				return err
			}
			if got != c.rows {
				t.Errorf("rows from %q to %q: %q, want %q", c.lo, c.hi, got, c.rows)
			}
		}
		return nil
	}
	for at := 1; ; at++ {
		f := &formattest.Faults{Left: at}
		err := run(f)
		if f.Open != 0 {
			t.Fatalf("row %d: %d iterators left open", at, f.Open)
		}
		if f.Left > 0 {
			if err != nil || at < 40 {
				t.Errorf("%v without a failure, %d rows", err, at)
			}
			return
		}
		if !errors.Is(err, formattest.ErrDisk) {
			t.Fatalf("row %d: %v", at, err)
		}
	}
}

var errOther = errors.New("it is no node of a cluster")

// TestRefused: a column family without records, a cancelled context, and malformed keys.
func TestRefused(t *testing.T) {
	rows := extsort.New(extsort.Options{TempDir: t.TempDir()})
	defer rows.Close()
	b := &clusterBuilder{Builder: memstore.New().Dir("d"), Rows: rows}
	if _, err := b.Run(codec.FamilyPubSub, 0, 0); err == nil {
		t.Error("rows of pubsub are taken")
	}
	run, err := b.Run(codec.FamilyMetadata, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Append(space.AppendMetaKey(nil, []byte("k")), nil); err != nil {
		t.Fatal(err)
	}
	run.Abort()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := dataset.WriteRuns(ctx, b.Builder, 0, rows, clusterPlace); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, ok := clusterOrder(space).Compare([]byte("\x01n\x00"), nil); ok {
		t.Error("a key without a slot is compared")
	}
	it, err := openClusterMetas(space)(
		dataset.Absent(codec.FamilyMetadata), format.Span{}, &format.Env{TempDir: t.TempDir()}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := it.SeekGE(nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}
