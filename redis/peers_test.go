package redis

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// peersDir holds the test files of other RDB readers.
const peersDir = "../../shared/peers-rdb"

// value is a record in a common form: a string; a list, or a sorted set of strings; a map of a hash; a map with scores;
// the entries of a stream, each "id field value …".
type value any

// values reads all records of a file, by database and key.
func values(t *testing.T, path string) map[string]value {
	t.Helper()
	src := openPath(t, path)
	out := map[string]value{}
	for _, db := range src.Databases() {
		spans, err := format.SplitAny(src, db, record.AllTypes, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans {
			r, err := formattest.Walk(src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: truthTime, TempDir: t.TempDir()}))
			if err != nil {
				t.Fatal(err)
			}
			readValues(t, r, out)
		}
	}
	return out
}

func readValues(t *testing.T, r *record.Walker, out map[string]value) {
	t.Helper()
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b := builder{h: h, hash: map[string]string{}, expiries: map[string]int64{}, scores: map[string]float64{}}
		name := h.DB + "/" + plain(h.Key)
		batch := make([]record.Element, 5)
		for {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range batch[:n] {
				b.add(&batch[i])
			}
		}
		out[name] = b.value()
		for field, ms := range b.expiries {
			out[name+" expiry of "+field] = ms
		}
		if h.ExpireMS != 0 {
			out[name+" expiry"] = h.ExpireMS
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// plain converts a text to its JSON form.
func plain(b []byte) string {
	coded, _ := json.Marshal(string(b))
	var out string
	json.Unmarshal(coded, &out)
	return out
}

// builder collects the elements of a record.
type builder struct {
	h        *record.Header
	texts    []string
	hash     map[string]string
	expiries map[string]int64
	scores   map[string]float64
}

func (b *builder) add(e *record.Element) {
	switch {
	case b.h.Type == record.Hash:
		b.hash[plain(e.Name)] = plain(e.Value)
		if e.ExpireMS != 0 {
			b.expiries[plain(e.Name)] = e.ExpireMS
		}
	case b.h.Type == record.ZSet:
		b.scores[plain(e.Name)] = e.Score
	case b.h.Type == record.Set:
		b.texts = append(b.texts, plain(e.Name))
	case b.h.Type != record.Stream:
		b.texts = append(b.texts, plain(e.Value))
	case e.Kind == record.Entry:
		var pairs []string
		for rest := e.Value; len(rest) > 0; {
			field, value, more, _ := record.DecodePair(rest)
			pairs, rest = append(pairs, plain(field)+"="+plain(value)), more
		}
		slices.Sort(pairs)
		pairs = slices.Compact(pairs) // the peer prints a map, so a repeated field occurs once
		b.texts = append(b.texts, fmt.Sprintf("%d-%d %q", binary.BigEndian.Uint64(e.Name), binary.BigEndian.Uint64(e.Name[8:]),
			pairs))
	}
}

func (b *builder) value() value {
	switch b.h.Type {
	case record.String, record.Other:
		return b.texts[0]
	case record.Hash:
		return b.hash
	case record.ZSet:
		return b.scores
	case record.Set:
		slices.Sort(b.texts)
	}
	return b.texts
}

// printed is a record as HDT3213/rdb prints it.
type printed struct {
	DB         int
	Key, Type  string
	Value      string
	Expiration string
	Hash       map[string]string
	Expire     map[string]int64
	Values     []string
	Members    []string
	Entries    json.RawMessage
}

func (p *printed) value(t *testing.T) value {
	t.Helper()
	switch p.Type {
	case "hash":
		return p.Hash
	case "list":
		return p.Values
	case "set":
		slices.Sort(p.Members)
		return p.Members
	case "zset":
		return p.scores(t)
	case "stream":
		return p.messages(t)
	}
	return p.Value
}

func (p *printed) scores(t *testing.T) map[string]float64 {
	t.Helper()
	var entries []struct {
		Member string
		Score  any
	}
	if err := json.Unmarshal(p.Entries, &entries); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, e := range entries {
		f, err := strconv.ParseFloat(fmt.Sprint(e.Score), 64)
		if err != nil {
			t.Fatal(err)
		}
		out[e.Member] = f
	}
	return out
}

func (p *printed) messages(t *testing.T) (out []string) {
	t.Helper()
	var nodes []struct {
		Msgs []struct {
			ID      string
			Fields  map[string]string
			Deleted bool
		}
	}
	if err := json.Unmarshal(p.Entries, &nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		for _, m := range n.Msgs {
			if m.Deleted {
				continue
			}
			var pairs []string
			for field, value := range m.Fields {
				pairs = append(pairs, field+"="+value)
			}
			slices.Sort(pairs)
			out = append(out, fmt.Sprintf("%s %q", m.ID, pairs))
		}
	}
	return out
}

// TestPeersHDT: the files of HDT3213/rdb hold the values that its tests expect.
func TestPeersHDT(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(peersDir, "hdt3213", "*.json"))
	if len(paths) == 0 {
		t.Skip("no files of peers")
	}
	records := 0
	for _, path := range paths {
		file := strings.TrimSuffix(path, ".json") + ".rdb"
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			continue
		}
		var want []printed
		if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, &want) != nil {
			t.Fatal(path, err)
		}
		have := values(t, file)
		for i := range want {
			p := &want[i]
			if p.Type == "aux" || p.Type == "functions" { // not keys
				continue
			}
			records++
			name := fmt.Sprintf("%d/%s", p.DB, p.Key)
			if got, want := have[name], p.value(t); !same(got, want) {
				t.Errorf("%s: %s: %.300v, want %.300v", filepath.Base(file), name, got, want)
			}
			for field, ms := range p.Expire {
				if got, _ := have[name+" expiry of "+field].(int64); got != ms {
					t.Errorf("%s: %s: field %s expires at %d, want %d", filepath.Base(file), name, field, got, ms)
				}
			}
		}
	}
	if records < 100 {
		t.Errorf("only %d records were compared", records)
	}
}

// same compares values; scores may be printed with fewer digits.
func same(got, want value) bool {
	a, ok := got.(map[string]float64)
	b, both := want.(map[string]float64)
	if !ok || !both {
		return reflect.DeepEqual(got, want)
	}
	for member, f := range b {
		if math.Abs(a[member]-f) > 1e-9 && a[member] != f {
			return false
		}
	}
	return len(a) == len(b)
}

// TestPeersTools: the files of redis-rdb-tools hold the values that its tests expect.
func TestPeersTools(t *testing.T) {
	if _, err := os.Stat(filepath.Join(peersDir, "redis-rdb-tools")); err != nil {
		t.Skip("no files of peers")
	}
	// A number is a count of elements or bytes.
	for _, c := range []struct {
		file, key, field string
		want             any
	}{
		{"multiple_databases", "0/key_in_zeroth_database", "", "zero"},
		{"multiple_databases", "2/key_in_second_database", "", "second"},
		{"keys_with_expiry", "0/expires_ms_precision expiry", "", int64(1671963072573)},
		{"integer_keys", "0/125", "", "Positive 8 bit integer"},
		{"integer_keys", "0/43947", "", "Positive 16 bit integer"},
		{"integer_keys", "0/183358245", "", "Positive 32 bit integer"},
		{"integer_keys", "0/-123", "", "Negative 8 bit integer"},
		{"integer_keys", "0/-29477", "", "Negative 16 bit integer"},
		{"integer_keys", "0/-183358245", "", "Negative 32 bit integer"},
		{"easily_compressible_string_key", "0/" + strings.Repeat("a", 200), "", "Key that redis should compress easily"},
		{"zipmap_that_compresses_easily", "0/zipmap_compresses_easily", "aaaaa", "aaaaaaaaaaaaaa"},
		{"zipmap_that_doesnt_compress", "0/zimap_doesnt_compress", "MKD1G6", "2"},
		{"zipmap_that_doesnt_compress", "0/zimap_doesnt_compress", "YNNXK", "F7TI"},
		{"zipmap_with_big_values", "0/zipmap_with_big_values", "253bytes", 253},
		{"zipmap_with_big_values", "0/zipmap_with_big_values", "254bytes", 254},
		{"zipmap_with_big_values", "0/zipmap_with_big_values", "255bytes", 255},
		{"zipmap_with_big_values", "0/zipmap_with_big_values", "300bytes", 300},
		{"hash_as_ziplist", "0/zipmap_compresses_easily", "aa", "aaaa"},
		{"dictionary", "0/force_dictionary", "", 1000},
		{"dictionary", "0/force_dictionary", "ZMU5WEJDG7KU89AOG5LJT6K7HMNB3DEI43M6EYTJ83VRJ6XNXQ", "T63SOS8DQJF0Q0VJEZ0D1IQFCYTIPSBOUIAI9SB0OV57MQR1FI"},
		{"ziplist_that_compresses_easily", "0/ziplist_compresses_easily", "", 6},
		{"ziplist_that_compresses_easily", "0/ziplist_compresses_easily", "5", strings.Repeat("a", 36)},
		{"ziplist_that_doesnt_compress", "0/ziplist_doesnt_compress", "", 2},
		{"ziplist_with_integers", "0/ziplist_with_integers", "", nil},
		{"linkedlist", "0/force_linkedlist", "", 1000},
		{"intset_16", "0/intset_16", "", []string{"32764", "32765", "32766"}},
		{"intset_32", "0/intset_32", "", []string{"2147418108", "2147418109", "2147418110"}},
		{"intset_64", "0/intset_64", "", []string{"9223090557583032316", "9223090557583032317", "9223090557583032318"}},
		{"regular_set", "0/regular_set", "", []string{"alpha", "beta", "delta", "gamma", "kappa", "phi"}},
		{"sorted_set_as_ziplist", "0/sorted_set_as_ziplist", "", map[string]float64{"8b6ba6718a786daefa69438148361901": 1,
			"cb7a24bb7528f934b841b34c3a73e0c7": 2.37, "523af537946b79c4f8369ed39ba78605": 3.423}},
		{"parser_filters", "0/k1", "", "ssssssss"},
		{"parser_filters", "0/k3", "", "wwwwwwww"},
		{"rdb_version_5_with_checksum", "0/longerstring", "", "thisisalongerstring.idontknowwhatitmeans"},
		{"rdb_version_5_with_checksum", "0/abcd", "", "efgh"},
	} {
		got := values(t, filepath.Join(peersDir, "redis-rdb-tools", c.file+".rdb"))[c.key]
		if c.field != "" {
			got = fieldOf(got, c.field)
		}
		if n, ok := c.want.(int); ok {
			got, c.want = size(got), n
		}
		if c.file == "ziplist_with_integers" { // among others
			for _, n := range []string{"63", "16380", "65535", "9223372036854775807"} {
				if list, _ := got.([]string); !slices.Contains(list, n) {
					t.Errorf("%s: no %s in %v", c.file, n, got)
				}
			}
			continue
		}
		if !same(got, c.want) {
			t.Errorf("%s: %.80s %s: %.200v, want %.200v", c.file, c.key, c.field, got, c.want)
		}
	}
	if got := values(t, filepath.Join(peersDir, "redis-rdb-tools", "empty_database.rdb")); len(got) > 0 {
		t.Errorf("empty_database: %v", got)
	}
}

// fieldOf returns a field of a hash, or an element of a list.
func fieldOf(v value, field string) value {
	if list, ok := v.([]string); ok {
		i, _ := strconv.Atoi(field)
		return list[i]
	}
	hash, _ := v.(map[string]string)
	return hash[field]
}

func size(v value) int { return reflect.ValueOf(v).Len() }
