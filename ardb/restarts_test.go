package ardb

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
)

// TestRestarts reads a file of a stock server on LMDB that was started three times and kept writing. 89 keys
// occur in the tree more than once. 5 of 853 values are not the last that the server acknowledged, and no
// property of the file identifies them: LMDB updates a value of the same size in place, pages have no time,
// and a page split moves rows, so that the place of a row says little about its age.
func TestRestarts(t *testing.T) {
	const name = "ardb-lmdb-restarts"
	found, first := "the row that the server finds", "the first in the tree"
	stale := map[string]string{ // rows found, acknowledged, which one is read and why it is not the acknowledged one
		// The search reaches a different row than at the time of the write: since then a page was split. The
		// server itself replies with the row that is read.
		"k119":                   "p1-356 p2-320 " + found,
		"h7 ggggggggggggggggggg": "q2-211 q2-258 " + found,
		// The search reaches neither row, so the server has lost both. Of seven such keys the first row has
		// the last value four times, the last row three times.
		"aaaa":              "p0-117 p2-228 " + first,
		"h6 f34":            "q0-92 q1-259 " + first,
		"h7 gggggggggggggg": "q1-262 q2-238 " + first,
	}
	want := acknowledged(t, fixtures.OutsideTruth(t, name))
	chosen, twice := map[string]string{}, map[string]int{}
	src := openDir(t, fixtures.UnpackOutside(t, name), kindLMDB, func(f record.Finding) {
		if f.Kind != record.FindKeyTwice {
			return
		}
		k, err := codec.DecodeKey(f.Key, false)
		if err != nil {
			t.Error(err)
		}
		_, why, _ := strings.Cut(f.Detail, "; ")
		_, why, _ = strings.Cut(why, "kvferry uses ")
		twice[why]++
		chosen[strings.TrimSpace(fmt.Sprintf("%s %s", k.User, codec.AppendServed(nil, k.Elems[0])))] = why
	})
	have := map[string]string{}
	readRecords(t, src, "0", record.RedisTypes, format.Span{}, testEnv(nil), func(h *record.Header, elems []record.Element) {
		for _, e := range elems {
			have[strings.TrimSpace(fmt.Sprintf("%s %s", h.Key, e.Name))] = string(e.Value)
		}
	})
	for key, value := range want {
		if have[key] == value {
			continue
		}
		if got := fmt.Sprintf("%s %s %s", have[key], value, chosen[key]); got != stale[key] {
			t.Errorf("%s: %s, want %q", key, got, stale[key])
		}
		delete(stale, key)
	}
	if len(have) != len(want) || len(stale) != 0 || twice[found] != 82 || twice[first] != 7 {
		t.Errorf("%d values of %d; as acknowledged are %v; twice are %v", len(have), len(want), stale, twice)
	}
}

// acknowledged returns the values of a truth file by key and field; members of sets have empty values.
func acknowledged(t *testing.T, truth []byte) map[string]string {
	t.Helper()
	text := func(v any) string {
		b, err := base64.StdEncoding.DecodeString(v.(string))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	out := map[string]string{}
	for _, raw := range bytes.Split(bytes.TrimSpace(truth), []byte("\n")) {
		var l struct {
			Type, Key string
			Value     any
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"string", "hash", "set"}, l.Type) {
			t.Fatalf("a %s", l.Type)
		}
		if l.Type == "string" {
			out[text(l.Key)] = text(l.Value)
			continue
		}
		for _, v := range l.Value.([]any) {
			if l.Type == "set" {
				out[text(l.Key)+" "+text(v)] = ""
			} else {
				out[text(l.Key)+" "+text(v.([]any)[0])] = text(v.([]any)[1])
			}
		}
	}
	return out
}
