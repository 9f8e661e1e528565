package lmdb

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// TestTwins: of several rows with one key, the reader returns the one that a bytewise search finds, or else the first.
// Each key is reported once, and all rows are in the tally.
func TestTwins(t *testing.T) {
	im := newImage(512)
	rows := rowsOf(500, 512)
	mixed := slices.Clone(rows[:400])
	slices.Reverse(mixed[200:300]) // not on the search path
	twin := func(key string) kv { return kv{key, "the other"} }
	mixed = append(mixed, twin(rows[399].key), twin(rows[250].key), twin(rows[10].key))
	im.database("0", mixed)
	told := map[string]string{}
	s := openTest(t, writeImage(t, im.finish()), &store.Options{Resort: true, Memory: 16 << 10, TempDir: t.TempDir(),
		Report: func(f record.Finding) {
			if f.Kind != record.FindKeyTwice || told[string(f.Key)] != "" {
				t.Errorf("%s %q is told twice: %s", f.Kind, f.Key, f.Detail)
			}
			told[string(f.Key)] = f.Detail
		}})
	k := find(t, s, "0").(*keyspace)
	for range 2 {
		it, err := k.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for {
			key, value, err := it.Next()
			if err != nil {
				break
			}
			got[string(key)] = string(value)
		}
		var tally record.Tally
		it.Tally(&tally)
		if it.Close() != nil || len(got) != 400 || tally.Visible != 400 || tally.Superseded != 3 || tally.Entries != 403 {
			t.Errorf("%d rows, %+v", len(got), tally)
		}
		for _, i := range []int{10, 250, 399} {
			found := answerOf(t, k, rows[i].key)
			want := rows[i].value
			if found != "" {
				want = found
			}
			if detail := told[rows[i].key]; got[rows[i].key] != want || strings.Contains(detail, "cannot find any") != (found == "") {
				t.Errorf("key %d: %.20q is taken, want %.20q: %s", i, got[rows[i].key], want, detail)
			}
		}
	}
	if len(told) != 3 {
		t.Errorf("%d keys are told", len(told))
	}
}

// answerOf returns the value of the row that a search finds, or "".
func answerOf(t *testing.T, k *keyspace, key string) string {
	t.Helper()
	page, index, found, err := k.serverSearch([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return ""
	}
	c := k.rows()
	for {
		n, err := c.next()
		if err != nil {
			t.Fatal("what was found is not there")
		}
		if leaf := c.levels[len(c.levels)-1]; leaf.num == page && leaf.next-1 == index {
			if string(n.key) != key {
				t.Fatalf("found %q for %q", n.key, key)
			}
			v, err := c.value(&n)
			if err != nil {
				t.Fatal(err)
			}
			return string(v)
		}
	}
}

// TestServerSearch: in a tree in bytewise order the search finds exactly the existing keys.
func TestServerSearch(t *testing.T) {
	im := newImage(512)
	rows := rowsOf(700, 512)
	im.database("0", rows)
	s := openTest(t, writeImage(t, im.finish()), &store.Options{})
	k := find(t, s, "0").(*keyspace)
	for i, r := range rows {
		if answerOf(t, k, r.key) != r.value {
			t.Fatalf("row %d is not found", i)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		key := []byte(fmt.Sprint(rnd.Uint64()))
		_, _, found, err := k.serverSearch(key)
		there := slices.ContainsFunc(rows, func(r kv) bool { return bytes.Equal([]byte(r.key), key) })
		if err != nil || found != there {
			t.Errorf("%s: found %t, %v", key, found, err)
		}
	}
}
