package floyd

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// instanceOf returns the instance that a user key belongs to.
func instanceOf(key []byte, slots, instances int) int { return Slot(key, slots) % instances }

// TestPlacer: consecutive keys get the same instances as single keys.
func TestPlacer(t *testing.T) {
	p, long := placer{slots: 1024, instances: 7}, strings.Repeat("abc", longKey)
	for _, key := range []string{"", "", "a", "12345678", "123456789", "12345678x", "12345678x", "1234567890123456",
		"12345678901234567", "12345678901234568",
		"x{12345678901234568}y", "x{12345678901234569}y", "x{}", "12345678901234567", "1234567", "\xff", long[:longKey-1], long[:longKey],
		long[:longKey-2], long, "\xff\xff"} {
		if got, want := p.instance([]byte(key)), instanceOf([]byte(key), 1024, 7); got != want {
			t.Errorf("%q: instance %d, want %d", key, got, want)
		}
	}
}

// TestAnySlots: any number of slots is found from the instances of the keys, even if a few keys are misplaced.
// Among numbers of the same effect the smallest is reported.
func TestAnySlots(t *testing.T) {
	for _, c := range []struct {
		slots, instances, want int
	}{{1024, 3, 1024}, {1, 3, 1}, {2000, 3, 2000}, {7, 3, 7}, {1536, 5, 1536}, {16384, 3, 16384},
		{16383, 2, 16383}, {999, 3, 3}, {4096, 4, 1024}, {100000, 3, 100000}, {5, 1, 1024}, {8191, 64, 8191}, {12288, 1024, 1024}} {
		for _, strays := range []int{0, 5} {
			keys := make(keySums, c.instances)
			for i := range max(400, 8*c.instances) {
				key := fmt.Appendf(nil, "key:%d", i)
				n := instanceOf(key, c.slots, c.instances)
				if i%71 == 70 && i/71 < strays {
					n = (n + 1) % c.instances
				}
				keys[n] = append(keys[n], sumOf(key))
			}
			if got, fits := keys.guess(); got != (spread{c.want, c.instances}) || !fits {
				t.Errorf("%+v, %d strays: %d", c, strays, got)
			}
		}
	}
	if got, fits := make(keySums, 3).guess(); got != (spread{1024, 3}) || !fits {
		t.Errorf("without keys there are %d slots", got)
	}
}

// goldenRows are rows that the engine wrote, or made by the documented layouts.
var goldenRows = []struct {
	name, bytes string // annotated hex: text in brackets is a comment
	want        any
}{
	{"meta key", "0000000000000000[r8] 683a[h:] 0000[end] 00000000000000000000000000000000[r16]", MetaKey{Key: []byte("h:")}},
	{"empty key", "0000000000000000 0000 00000000000000000000000000000000", MetaKey{Key: []byte{}}},
	{"trailing NUL", "0000000000000000 610001[a NUL] 0000 00000000000000000000000000000000", MetaKey{Key: []byte("a\x00")}},
	{"bytes that were lost", "0000000000000000 610001 0000 00000000000000000000000000000000 78797a", MetaKey{Key: []byte("a\x00"), Lost: 3}},
	{"field", "0000000000000000 6f6b680001[okh NUL] 0000 3374e5cf8b010000[version] 66[f] 00000000000000000000000000000000",
		DataKey{[]byte("okh\x00"), 0x18bcfe57433, []byte("f")}},
	{"score", "0000000000000000 7a 0000 0100000000000000 000000000000f03f[1.0] 6d 00000000000000000000000000000000",
		ScoreKey{[]byte("z"), 1, 1, []byte("m")}},
	{"string", "00 74[t] 00000000000000000000000000000000 3374e5cf8b010080[ms] 0000000000000000", StringValue{Bytes: []byte("t"), Ctime: 0x8000018bcfe57433}},
	{"hyperloglog", "00 80000000000000000000000000000000 047ce5cf8b010000 0000000000000000", StringValue{Bytes: []byte{}, HyperLogLog: true, Ctime: 0x18bcfe57c04}},
	{"meta", "01 02000000 3374e5cf8b010000 00000000000000000000000000000000 3374e5cf8b010080 0000000000000000",
		Meta{Type: record.Hash, Count: 2, Version: 0x18bcfe57433, Ctime: 0x8000018bcfe57433}},
	{"list meta", "03 0200000000000000 0100000000000000 ffffffffffffff7f 0000000000000000 0200000000000080 0000000000000000" +
		"00000000000000000000000000000000 0000000000000000 0000000000000000", ListMeta{Count: 2, Version: 1, Left: firstLeft, Right: firstLeft + 3}},
	{"stream meta", "05 00000000 0100000000000000 0100000000000000 0000000000000000 0200000000000000 0300000000000000" +
		"0000000000000000 0000000000000000 01000000 0200000000000000",
		StreamMeta{Stream: versioned.StreamMeta{Added: 1, First: versioned.ID{7: 1}, Last: versioned.ID{7: 2, 15: 3}}, Length: 1, Version: 2}},
}

// raw reads annotated hex.
func raw(t testing.TB, s string) []byte {
	t.Helper()
	for strings.Contains(s, "[") {
		i, j := strings.Index(s, "["), strings.Index(s, "]")
		s = s[:i] + s[j+1:]
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode decodes b as the type of like, and encodes it again.
func decode(like any, b []byte) (got any, again []byte, err error) {
	switch like.(type) {
	case MetaKey:
		k, err := DecodeMetaKey(b)
		return k, append(AppendMetaKey(nil, k), b[max(0, len(b)-k.Lost):]...), err
	case DataKey:
		k, err := DecodeDataKey(b)
		return k, AppendDataKey(nil, k), err
	case ScoreKey:
		k, err := DecodeScoreKey(b)
		return k, AppendScoreKey(nil, k), err
	case StringValue:
		v, err := DecodeStringValue(b)
		return v, AppendStringValue(nil, v), err
	case Meta:
		m, err := DecodeMeta(b)
		return m, AppendMeta(nil, m), err
	case ListMeta:
		m, err := DecodeListMeta(b)
		return m, AppendListMeta(nil, m), err
	}
	m, err := DecodeStreamMeta(b)
	return m, AppendStreamMeta(nil, m), err
}

func TestGoldenRows(t *testing.T) {
	for _, g := range goldenRows {
		b := raw(t, g.bytes)
		got, again, err := decode(g.want, b)
		if err != nil || !reflect.DeepEqual(got, g.want) {
			t.Errorf("%s: %+v, %v; want %+v", g.name, got, err, g.want)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%s: encoded as %x, was %x", g.name, again, b)
		}
	}
}

// TestDamagedRows: every decoder decodes or refuses every strict prefix of a row, and every row with a changed
// byte.
func TestDamagedRows(t *testing.T) {
	for _, g := range goldenRows {
		b := raw(t, g.bytes)
		for i := range b {
			for _, like := range goldenRows {
				decode(like.want, b[:i])
				b[i] ^= 0xff
				decode(like.want, b)
				b[i] ^= 0xff
			}
			// Names and strings have no length field: a truncated row may be a valid shorter one.
			_, _, err := decode(g.want, b[:i])
			if err == nil && !slices.Contains([]string{"bytes that were lost", "field", "score", "string"}, g.name) {
				t.Errorf("%s: %d of %d bytes are whole", g.name, i, len(b))
			}
		}
	}
}

// TestCodecOutcomes compares decoded values and errors of damaged rows with testdata/codec.txt.
func TestCodecOutcomes(t *testing.T) {
	var got strings.Builder
	for _, g := range goldenRows {
		fmt.Fprintf(&got, "%s: %s\n\n", g.name, formattest.Damaged(raw(t, g.bytes), func(b []byte) string {
			v, again, err := decode(g.want, b)
			return fmt.Sprintf("%+v %x %v", v, again, err)
		}))
	}
	formattest.CheckOutcomes(t, "testdata/codec.txt", got.String())
}

// TestUserKeyOrder: encoded user keys sort like user keys.
func TestUserKeyOrder(t *testing.T) {
	keys := []string{"", "\x00", "\x00\x00", "\x00a", "\x01", "a", "a\x00", "a\x00\x00", "a\x00b", "a\x01", "ab", "b", "\xff"}
	for i := range keys {
		for j := range keys {
			a, b := AppendUserKey(nil, []byte(keys[i])), AppendUserKey(nil, []byte(keys[j]))
			if got, want := bytes.Compare(a, b), strings.Compare(keys[i], keys[j]); got != want {
				t.Errorf("%q and %q compare as %d, encoded as %d", keys[i], keys[j], want, got)
			}
			if i != j && bytes.HasPrefix(a, b) {
				t.Errorf("%q begins with %q", keys[i], keys[j])
			}
		}
		key, rest, err := DecodeUserKey(append(AppendUserKey(nil, []byte(keys[i])), 'x'))
		if err != nil || string(key) != keys[i] || string(rest) != "x" {
			t.Errorf("%q comes back as %q, %q, %v", keys[i], key, rest, err)
		}
	}
}

// TestComparators: the comparators order by version, index and score as numbers; truncated keys sort first.
func TestComparators(t *testing.T) {
	list := func(key string, version Version, index string) []byte {
		return AppendDataKey(nil, DataKey{[]byte(key), version, []byte(index)})
	}
	cut := func(b []byte, n int) []byte { return b[:len(b)-n] }
	const one, two, more = "\x01\x00\x00\x00\x00\x00\x00\x00", "\x02\x00\x00\x00\x00\x00\x00\x00", "\x00\x01\x00\x00\x00\x00\x00\x00"
	userKey := AppendUserKey(nil, []byte("a"))
	broken := [][]byte{{}, zeros[:headLen-1], append(zeros[:headLen:headLen], 'a'), append(zeros[:headLen:headLen], "b\x00"...),
		[]byte("broken")}
	lists := append(broken[:len(broken):len(broken)], userKey, append(userKey[:len(userKey):len(userKey)], "\xff\x01"...),
		cut(list("a", 255, one), 8+tailLen), cut(list("a", 255, one), 1+tailLen), cut(list("a", 255, two), tailLen),
		list("a", 255, two), cut(list("a", 255, more), tailLen), list("a", 255, more),
		cut(list("a", 256, one), 8+tailLen), cut(list("a", 256, one), 8+tailLen-1), list("a", 256, one), list("a\x00", 1, one),
		list("b", 0, one))
	score := func(key string, version Version, s float64, member string) []byte {
		return AppendScoreKey(nil, ScoreKey{[]byte(key), version, s, []byte(member)})
	}
	scores := append(broken[:len(broken):len(broken)], userKey, cut(score("a", 255, 9, ""), 8+tailLen),
		cut(score("a", 255, 9, ""), 1+tailLen), score("a", 255, 9, "x"),
		cut(score("a", 256, -2, ""), 8+tailLen), score("a", 256, -2, "x"), score("a", 256, -1, "x"), score("a", 256, 0, "x"),
		score("a", 256, 0, "y"), score("a", 256, 10, "x"), score("b", 1, 0, ""))
	for _, c := range []struct {
		keys    [][]byte
		compare func(a, b []byte) int
	}{{lists, compareListKeys}, {scores, compareScoreKeys}} {
		for i := range c.keys {
			for j := range c.keys {
				if got := c.compare(c.keys[i], c.keys[j]); got < 0 != (i < j) || got > 0 != (i > j) {
					t.Errorf("%x and %x compare as %d", c.keys[i], c.keys[j], got)
				}
			}
		}
	}
	negative := append([]byte{}, score("a", 1, 0, "m")...)
	negative[headLen+1+2+versionLen+7] = 0x80
	if compareScoreKeys(negative, score("a", 1, 0, "m")) != 0 {
		t.Error("-0.0 is not 0.0")
	}
}

func fuzzDecoder(f *testing.F, like any) {
	for _, g := range goldenRows {
		f.Add(raw(f, g.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, again, err := decode(like, b)
		if err != nil {
			return
		}
		if back, _, err := decode(like, again); err != nil || !reflect.DeepEqual(back, got) {
			if s, ok := got.(ScoreKey); !ok || s.Score == s.Score { // NaN is not itself
				t.Errorf("%x is %+v, then %+v, %v", b, got, back, err)
			}
		}
	})
}

func FuzzDecodeMetaKey(f *testing.F)     { fuzzDecoder(f, MetaKey{}) }
func FuzzDecodeDataKey(f *testing.F)     { fuzzDecoder(f, DataKey{}) }
func FuzzDecodeScoreKey(f *testing.F)    { fuzzDecoder(f, ScoreKey{}) }
func FuzzDecodeStringValue(f *testing.F) { fuzzDecoder(f, StringValue{}) }
func FuzzDecodeMeta(f *testing.F)        { fuzzDecoder(f, Meta{}) }
func FuzzDecodeListMeta(f *testing.F)    { fuzzDecoder(f, ListMeta{}) }
func FuzzDecodeStreamMeta(f *testing.F)  { fuzzDecoder(f, StreamMeta{}) }

// TestTypes: every byte names a type or is refused.
func TestTypes(t *testing.T) {
	for b := range 256 {
		typ, err := DecodeType([]byte{byte(b), 1})
		if (err == nil) != (b < len(typeOf)) || err == nil && typ != typeOf[b] {
			t.Errorf("byte %d: %v, %v", b, typ, err)
		}
	}
}

// TestUserKeyIsApart: appending to a decoded key does not overwrite its row.
func TestUserKeyIsApart(t *testing.T) {
	b := AppendUserKey(nil, []byte("key"))
	was := bytes.Clone(b)
	key, _, err := DecodeUserKey(b)
	_ = append(key, 'x')
	if err != nil || !bytes.Equal(b, was) {
		t.Errorf("%x became %x, %v", was, b, err)
	}
}

// TestAmbiguousKeys: the engine cuts a key at any NUL, so a row may belong to one of several names.
func TestAmbiguousKeys(t *testing.T) {
	for key, want := range map[string]bool{"key": false, "": false, "\x00key": true, "k\x00ey": true, "key\x00": true} {
		var m versioned.Meta
		err := decodeMetaKey(&m, AppendMetaKey(nil, MetaKey{Key: []byte(key)}))
		if err != nil || string(m.Key) != key || m.Ambiguous != want {
			t.Errorf("%q: %+v, %v", key, m, err)
		}
	}
}

// TestGuessInstances: keys reveal missing instances if they suffice as a proof.
func TestGuessInstances(t *testing.T) {
	const keys = 400
	for _, c := range []struct {
		name           string
		slots, n, left int // the instances from left on are missing
		keys, strays   int
		tag            string
		want           spread
		fits           bool
	}{
		{"all are there", 1024, 3, 3, keys, 0, "", spread{1024, 3}, true},
		{"one is there", 1024, 1, 1, keys, 0, "", spread{1024, 1}, true},
		{"as many slots as instances", 64, 64, 64, 8 * keys, 0, "", spread{1024, 64}, true},
		{"the last is gone", 1024, 3, 2, keys, 0, "", spread{1024, 3}, true},
		{"all but the first are gone", 1024, 3, 1, keys, 0, "", spread{1024, 3}, true},
		{"half are gone", 1024, 8, 4, keys, 0, "", spread{1024, 8}, true},
		{"of many", 16384, 100, 50, 4 * keys, 0, "", spread{16384, 100}, true},
		{"other slots", 2048, 3, 2, keys, 0, "", spread{2048, 3}, true},
		{"a few are elsewhere", 1024, 3, 2, keys, 2, "", spread{1024, 3}, true},
		{"many are elsewhere", 1024, 3, 2, keys, 60, "", spread{1024, 2}, false},
		{"too few keys", 1024, 4, 2, 30, 0, "", spread{1024, 2}, true},
		{"of one slot", 1024, 3, 3, keys, 0, "{tag}", spread{1024, 3}, true},
		{"unusual slots", 778, 3, 3, keys, 0, "", spread{778, 3}, true},
		{"unusual slots, the last is gone", 778, 3, 2, keys, 0, "", spread{778, 3}, true},
		{"unusual slots, many are elsewhere", 778, 3, 3, keys, 60, "", spread{778, 3}, false},
		{"no number of slots", 1 << 20, 3, 3, keys, 0, "", spread{1024, 3}, false},
	} {
		byInstance := make(keySums, c.left)
		for i := range c.keys {
			key := fmt.Appendf(nil, "%skey%d", c.tag, i)
			at := instanceOf(key, c.slots, c.n)
			if i < c.strays {
				at = (at + 1) % c.left
			}
			if at < c.left {
				byInstance[at] = append(byInstance[at], sumOf(key))
			}
		}
		got, fits := byInstance.guess()
		if c.fits && got != c.want || !c.fits && got.instances != c.want.instances || fits != c.fits {
			t.Errorf("%s: %+v, %t", c.name, got, fits)
		}
	}
}

// TestBarren: an instance without keys is suspicious if the others have keys in many slots.
func TestBarren(t *testing.T) {
	for _, c := range []struct {
		keys, instances, slots int
		want                   bool
	}{{400, 3, 1024, true}, {20, 3, 1024, false}, {400, 900, 1024, false}, {400, 3, 2, false}} {
		sums := make(keySums, c.instances)
		for i := range c.keys {
			sums[0] = append(sums[0], sumOf(fmt.Append(nil, i)))
		}
		if got := sums.barren(spread{c.slots, c.instances}, 2); got != c.want {
			t.Errorf("%+v", c)
		}
	}
}
