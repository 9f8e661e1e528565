package keydbflash

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
	"kvferry/store/rocks"
)

// unhex returns the bytes of hex digits, ignoring blanks.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rows lists rows of real servers: a string, a number, a long string, a set with a member that expires, a cron job.
var rows = map[string]string{
	"embstr": "01000000 00000000 b9300752a2010000 00 ffffffffffffffff 80d4c907 01000080 b9300752a2010000 060601656d627374 656d62737472",
	"int":    "00000000 00 ffffffffffffffff 10d4c907 01000000 0000000000000000 3930000000000000",
	"raw":    "00000000 00 ffffffffffffffff 00d4c907 01000000 0000000000000000 d3fd0008fb7f0000 " + strings.Repeat("60", 72),
	"set": "02000000 01000000 6d b9300752a2010000 00000000 00280b9bba030000 02 02 016e 016d fa 0b " +
		"6d7663632d747374616d70 14 3138343436373434303733373039353531363135 0900 d5c7e1d51c12033a",
	"cron": "01000000030000006a6f62bd120952a2010000400872657475726e2031bd486e16a201000000ca9a3b000000000000fa0b6d7663632d747374616d70" +
		"14313834343637343430373337303935353136313509009ac2c53837db2485",
}

func withText(text string) []byte {
	return append(append([]byte{0, 0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, mvccLen)...), append(make([]byte, 24), text...)...)
}

// payloadOf appends the footer of a payload to an object that has one expiry of the key.
func payloadOf(object []byte) []byte {
	object = binary.LittleEndian.AppendUint16(bytes.Clone(object), 9)
	return append(make([]byte, countLen), binary.LittleEndian.AppendUint64(object, crc64.Update(0, object))...)
}

func TestValues(t *testing.T) {
	for name, want := range map[string]string{
		"embstr": "1796672532665/1796672532665 type 0 \"embstr\"", "int": "0/0 type 0 \"12345\"",
		"raw": fmt.Sprintf("0/0 type 0 %q", strings.Repeat("`", 72)), "set": "4100000000000/1796672532665 type 2", "cron": "0/1796672656061 type 64",
	} {
		v, err := decodeValue(unhex(t, rows[name]))
		if err != nil {
			t.Fatal(err)
		}
		key, first := v.expiry()
		typ, err := v.typ()
		got := fmt.Sprintf("%d/%d type %d", key, first, typ)
		if typ == rdb.TypeString && err == nil {
			var text []byte
			text, err = newDialect.decodeString(nil, &v)
			got += fmt.Sprintf(" %q", text)
		} else if err == nil {
			err = v.checkPayload()
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, want %s; %v", name, got, want, err)
		}
	}
	old := append(make([]byte, 4), append([]byte{0}, make([]byte, mvccLen+16)...)...)
	old[4+imageAt] = encodingInt << 4
	old[len(old)-8] = 7
	v, _ := decodeValue(old)
	if text, err := oldDialect.decodeString(nil, &v); string(text) != "7" || err != nil {
		t.Errorf("a number before 6.3.4 is %q, %v", text, err)
	}
}

func TestKeys(t *testing.T) {
	long := internal + "x"
	for key, want := range map[string]string{"e": "033c65", "": "0000", internal[:6]: "", internal: "",
		long: hex.EncodeToString([]byte(long))} {
		raw := newDialect.appendKey(nil, []byte(key))
		user, err := newDialect.decodeKey(raw)
		if err != nil || string(user) != key || want != "" && hex.EncodeToString(raw) != want {
			t.Errorf("%q: %x, decoded %q, %v", key, raw, user, err)
		}
		if raw := oldDialect.appendKey(nil, []byte(key)); string(raw) != key {
			t.Errorf("before 6.3.4 %q is %q", key, raw)
		}
	}
	if raw := newDialect.appendKey(nil, []byte(internal)); len(raw) != slotLen+len(internal) {
		t.Errorf("what begins the server's rows is no row of its own: %x", raw)
	}
	for i := 0; ; i++ { // a key whose slot and first bytes look like those of the server's rows
		key := fmt.Appendf(nil, "%s%d", internal[slotLen:], i)
		if raw := newDialect.appendKey(nil, key); isInternal(raw) {
			if user, err := newDialect.decodeKey(raw); err != nil || !bytes.Equal(user, key) {
				t.Errorf("%q: decoded %q, %v", key, user, err)
			}
			break
		}
	}
	for _, raw := range []string{"", "\x00", "\x01\x00a"} {
		if _, err := newDialect.decodeKey([]byte(raw)); err == nil {
			t.Errorf("%q is a key", raw)
		}
	}
	for text, want := range map[string]dialect{"6.3.4\x00": newDialect, "6.3.3\x00": oldDialect, "5.9.9\x00": oldDialect,
		"6.2.7\x00": oldDialect, "255.255.255\x00": newDialect, "0.0.0\x00": newDialect, "7.0.0\x00": newDialect} {
		if d, err := dialectOf([]byte(text)); d != want || err != nil {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "6.3.4", "6.3\x00", "a.b.c\x00", "6.3.4.5\x00", "6.-3.4\x00"} {
		if _, err := dialectOf([]byte(text)); err == nil {
			t.Errorf("%q is a version", text)
		}
	}
}

// TestMasters: each master ends with a semicolon, and there may be none.
func TestMasters(t *testing.T) {
	for value, ok := range map[string]bool{"": true, "id:1:host:6379;": true, "id:1:host:6379;id:2:other:1;": true,
		"id:1:host:6379": false, ";x": false} {
		name, err := newDialect.metadataRow(newDialect.appendKey(nil, []byte("repl-masters")), []byte(value))
		if name != "repl-masters" || (err == nil) != ok {
			t.Errorf("%q: %s, %v", value, name, err)
		}
	}
}

// empty is a dataset in memory, of the newest KeyDB.
func empty(t *testing.T) (*memstore.Store, *formattest.Memory) {
	m := formattest.NewMemory(t, New())
	st := m.FS.Dir(m.Dir)
	for _, name := range []string{"default", "0", "0_expires", "1", "1_expires", "2_expires"} {
		st.Len(name)
		if !strings.HasSuffix(name, expires) {
			st.Put(name, []byte(rowVersion), []byte("6.3.4\x00"))
		}
	}
	st.Put("default", []byte(rowMetadata), []byte(metadataID))
	return st, m
}

// read returns the records of a dataset, as "db type key=elements", and the findings; the ledger must add up.
func read(t *testing.T, m *formattest.Memory) (records string, found *formattest.Findings, classes string) {
	t.Helper()
	found = &formattest.Findings{}
	src := formattest.Open(t, m.Format, m.Dir,
		&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: found.Report}})
	var ledger record.Ledger
	for _, db := range src.Databases() {
		r := formattest.Records(t, src, db, &format.Env{Ledger: &ledger, Report: found.Report, Deep: true, TempDir: t.TempDir()})
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%s %s %q %d", h.DB, h.Type, h.Key, h.ExpireMS)
			batch := make([]record.Element, 2)
			for n, err := r.Read(batch); err == nil; n, err = r.Read(batch) {
				for _, e := range batch[:n] {
					text += fmt.Sprintf(" %s=%s/%d", e.Name, e.Value, e.ExpireMS)
				}
			}
			records += text + "\n"
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	formattest.CheckLedger(t, &ledger)
	for _, ks := range src.Keyspaces() {
		if c := formattest.Classes(&ledger, ks.Name); c != "" {
			classes += ks.Name + ": " + c + "\n"
		}
	}
	return records, found, classes
}

func put(st *memstore.Store, family, key string, value []byte) {
	st.Put(family, newDialect.appendKey(nil, []byte(key)), value)
}

// TestForged: each row that no server writes is lost and reported.
func TestForged(t *testing.T) {
	number := func(v []byte, tail ...byte) []byte {
		v = append(bytes.Clone(v), tail...)
		v[countLen+imageAt] = encodingInt << 4
		return v
	}
	huge := append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 40)...)
	long := append([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 40)...)
	odd := withText("x")
	odd[countLen+imageAt] = 0x31
	other := withText("x")
	other[countLen+imageAt] = 0x20
	for name, c := range map[string]struct {
		value []byte
		kind  string
	}{
		"no value": {nil, "short-value"}, "count alone": {make([]byte, countLen), "short-value"}, "huge count": {huge, "short-value"},
		"long member": {long, "short-value"}, "short image": {withText("")[:20], "short-value"},
		"a time before 1970": {append(unhex(t, "01000000 00000000 ffffffffffffffff"), withText("x")[4:]...), "bad-value"},
		"times descend":      {append(unhex(t, "02000000 00000000 0900000000000000 00000000 0800000000000000"), withText("x")[4:]...), "bad-value"},
		"number and more":    {number(withText(""), 0), "newer"}, "type of the image": {odd, "newer"}, "encoding": {other, "newer"},
		"type 77": {payloadOf([]byte{77}), "newer"}, "listpack": {payloadOf([]byte{16, 0}), "newer"}, "JSON of Dragonfly": {payloadOf([]byte{30, 1, 'x'}), "newer"},
		"no checksum":   {[]byte{0, 0, 0, 0, 2, 1, 1, 'm', 9, 0, 1, 2, 3, 4, 5, 6, 7, 8}, "bad-value"},
		"short payload": {[]byte{0, 0, 0, 0, 2, 1}, "short-value"}, "huge set": {payloadOf([]byte{2, 0x80, 0xff, 0xff, 0xff, 0xff}), "bad-value"},
		"bytes behind a set":     {payloadOf([]byte{2, 1, 1, 'm', 1}), "newer"},
		"an intset of odd width": {payloadOf([]byte{11, 9, 3, 0, 0, 0, 1, 0, 0, 0, 1}), "bad-value"},
	} {
		t.Run(name, func(t *testing.T) {
			st, m := empty(t)
			put(st, "0", "bad", c.value)
			put(st, "0", "good", withText("v"))
			put(st, "1", "bad", withText("w"))
			records, found, classes := read(t, m)
			if want := "0 string \"good\" 0 =v/0\n1 string \"bad\" 0 =w/0\n"; records != want {
				t.Errorf("records\n%s", records)
			}
			if !strings.Contains(classes, "0: malformed=1 housekeeping=1 copied=1\n") {
				t.Errorf("classes\n%s", classes)
			}
			kinds := strings.Join(found.Kinds(), " ")
			if kinds != strings.Join([]string{c.kind, FindUnclean}, " ") || string(found.All[1].Key) != "bad" {
				t.Errorf("findings %s: %+v", kinds, found.All)
			}
		})
	}
}

// TestOddRows: rows outside of records, and in wrong places.
func TestOddRows(t *testing.T) {
	st, m := empty(t)
	put(st, "default", "repl-id", make([]byte, 41))
	put(st, "default", "repl-offset", make([]byte, 7)) // short-value
	put(st, "default", "other", nil)                   // newer
	st.Put("0", []byte(rowCount), make([]byte, 8))
	st.Put("0", []byte(rowLastExpire), make([]byte, 8)) // newer
	st.Put("0", []byte("\x01\x00moved"), withText("x")) // slot-mismatch
	put(st, "0", internal+"mine", withText("x"))
	put(st, "0", "both", unhex(t, rows["set"])) // missing-ttl-row, member-expiry
	st.Put("1_expires", appendIndex(nil, 7, []byte("gone")), []byte("gone"))
	st.Put("1_expires", appendIndex(nil, 8, []byte("gone")), []byte("else")) // bad-value
	st.Put("1_expires", []byte("short"), nil)                                // short-value
	records, found, classes := read(t, m)
	if want := "0 string \"\\x00\\x04\\x03\\x00\\x05\\x02\\x04mine\" 0 =x/0\n0 set \"both\" 4100000000000 n=/0 m=/0\n"; records !=
		want {
		t.Errorf("records\n%s", records)
	}
	wanted := "0: malformed=2 housekeeping=2 copied=2\ndefault: malformed=2 housekeeping=3\n1: housekeeping=1\n1_expires: malformed=2 housekeeping=1\n"
	if classes != wanted {
		t.Errorf("classes\n%s", classes)
	}
	want := "bad-value member-expiry missing-ttl-row newer newer short-value short-value slot-mismatch stale-ttl-rows"
	if kinds := strings.Join(found.Kinds(), " "); kinds != want {
		t.Errorf("findings %s", kinds)
	}
}

// TestDatabases: families map to databases, also if all are empty.
func TestDatabases(t *testing.T) {
	number := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	for name, c := range map[string]struct {
		rows map[string][]byte
		want string
		kind string
	}{
		"as they were made": {nil, "0 a 1 b", ""},
		"swapped":           {map[string][]byte{"db-0": number(1), "db-1": number(0)}, "0 b 1 a", ""},
		"swapped back":      {map[string][]byte{"db-0": number(0), "db-1": number(1)}, "0 a 1 b", ""},
		"one name twice":    {map[string][]byte{"db-0": number(1)}, "0 a 1 b", FindSwapped},
		"out of range":      {map[string][]byte{"db-0": number(1 << 31)}, "0 a 1 b", FindSwapped},
	} {
		st, m := empty(t)
		put(st, "0", "a", withText(""))
		put(st, "1", "b", withText(""))
		for key, value := range c.rows {
			put(st, "default", key, value)
		}
		records, found, _ := read(t, m)
		got := strings.NewReplacer(" string ", " ", "\"", "", " 0 =/0", "", "\n", " ").Replace(records)
		if strings.TrimSpace(got) != c.want || (c.kind != "") != strings.Contains(strings.Join(found.Kinds(), " "), FindSwapped) {
			t.Errorf("%s: %q, %v", name, got, found.Kinds())
		}
	}
	_, m := empty(t)
	if records, found, classes := read(t, m); records != "" || len(found.All) > 0 || !strings.Contains(classes, "1: housekeeping=1") {
		t.Errorf("an empty dataset has %q, %v\n%s", records, found.All, classes)
	}
}

// TestBefore634: keys without slots, small images, no index.
func TestBefore634(t *testing.T) {
	m := formattest.NewMemory(t, New())
	st := m.FS.Dir(m.Dir)
	for _, name := range []string{"default", "0", "1"} {
		st.Put(name, []byte(rowVersion), []byte("6.3.1\x00"))
	}
	st.Put("1", []byte("k"), append(append([]byte{0, 0, 0, 0, 0}, make([]byte, mvccLen+16)...), "text"...))
	st.Put("1", []byte("l"), unhex(t, rows["set"]))
	records, found, _ := read(t, m)
	if want := "1 string \"k\" 0 =text/0\n1 set \"l\" 4100000000000 n=/0 m=/0\n"; records != want {
		t.Errorf("records\n%s", records)
	}
	found.CheckNone(t, record.Error)
	src := m.Open(t)
	if !src.Sorted() {
		t.Error("keys without slots are in order")
	}
}

// TestSpans: rows without a slot are mixed with the rows of one slot, and each row is in one span.
func TestSpans(t *testing.T) {
	st, m := empty(t)
	n := 0
	for _, key := range []string{"", "a", "b", internal[:2], internal, internal + "1", internal + "\xff", internal[2:] + "x",
		"\x00\x05", "\xff\xff"} {
		put(st, "0", key, withText(key))
		n++
	}
	for i := range 200 {
		st.Put("0", append([]byte(internal[:2]), fmt.Sprintf("moved%d", i)...), withText("")) // in the slot of those without one
	}
	src := m.Open(t)
	for _, cut := range []string{"\x00", internal, internal + "1", "\x00\x05", "\x01", "a", "moved150", "z"} {
		var ledger record.Ledger
		got := 0
		for _, span := range []format.Span{{Hi: []byte(cut)}, {Lo: []byte(cut)}} {
			r := formattest.RecordsOf(t, src, "0", record.AllTypes, span, &format.Env{Ledger: &ledger})
			for {
				h, err := r.Next()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if in := span.Hi != nil && string(h.Key) < cut || span.Lo != nil && string(h.Key) >= cut; !in {
					t.Errorf("cut at %q: %q is in the wrong span", cut, h.Key)
				}
				got++
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		classes := formattest.Classes(&ledger, "0")
		if got != n || classes != fmt.Sprintf("malformed=200 housekeeping=1 copied=%d", n) {
			t.Errorf("cut at %q: %d records, %s", cut, got, classes)
		}
	}
}

// TestSweep: rows truncated anywhere or with a flipped byte give an error or a value, never a panic, and are described.
func TestSweep(t *testing.T) {
	_, m := empty(t)
	src := m.Open(t)
	for name, text := range rows {
		whole := unhex(t, text)
		check := func(b []byte) {
			row := src.Describe("0", "0", newDialect.appendKey(nil, []byte("k")), b)
			if err := decodeAll(newDialect, b); (err == nil) != (row.Err == nil) {
				t.Errorf("%s: %x: %v, described with %v", name, b, err, row.Err)
			}
		}
		check(whole)
		for i := range whole {
			check(whole[:i])
			for _, bit := range []byte{0x01, 0x80, 0xff} {
				b := bytes.Clone(whole)
				b[i] ^= bit
				check(b)
				err := decodeAll(newDialect, b)
				if err == nil && name != "embstr" && name != "int" && name != "raw" && i > 4+24+8+1 {
					t.Errorf("%s: byte %d changed, and nothing is told", name, i)
				}
			}
		}
	}
}

// decodeAll decodes a value to its last element.
func decodeAll(d dialect, b []byte) error {
	v, err := decodeValue(b)
	if err != nil {
		return err
	}
	t, err := v.typ()
	if err != nil {
		return err
	}
	if t == rdb.TypeString {
		_, err = d.decodeString(nil, &v)
		return err
	}
	dump, err := v.payload()
	var dec rdb.Decoder
	defer dec.Close()
	var h record.Header
	if err == nil {
		err = dec.Begin(dump.Type, dump.Header, dump.Value, dump.Off, &h)
	}
	for batch := make([]record.Element, 8); err == nil; {
		_, err = dec.Read(batch)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// FuzzValue: a value decodes or is an error, and decoded data is within the value.
func FuzzValue(f *testing.F) {
	for _, text := range rows {
		f.Add(unhex(f, text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range []dialect{newDialect, oldDialect} {
			err := decodeAll(d, b)
			var c *record.CorruptError
			if err != nil && !errors.As(err, &c) {
				t.Fatalf("%v says no offset", err)
			}
			if err == nil && len(b) < countLen+1 {
				t.Fatal("decoded nothing")
			}
		}
	})
}

// FuzzKeys: a decoded key encodes to the same bytes; rows of default and of the index never panic.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"", "\x03\x3ce", rowCount, rowVersion, "o2repl-masters"} {
		f.Add([]byte(key), []byte("6.3.4\x00"))
	}
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		for _, d := range []dialect{newDialect, oldDialect} {
			if user, err := d.decodeKey(raw); err == nil && !isInternal(user) && !bytes.Equal(d.appendKey(nil, user), raw) {
				t.Fatalf("%x is written as %x", raw, d.appendKey(nil, user))
			}
			d.metadataRow(raw, value)
		}
		if when, key, err := decodeIndex(raw, value); err == nil && !bytes.Equal(appendIndex(nil, when, key), raw) {
			t.Fatalf("%x is written as another row", raw)
		}
	})
}

func TestLimits(t *testing.T) {
	formattest.Limits(t, New(), "Types=string,hash,list,set,zset,stream,other EmptyKey MaxScore=+Inf StreamGroups FieldsRead MembersExpire "+
		"Opaque=[module keydb-cron] NoTarget="+noTarget+" Numbered rocksdb:r Beside=[keydb_tmp]")
	if _, err := New().Create(t.Context(), "x", nil); err == nil {
		t.Error("a target is created")
	}
}

func TestDetect(t *testing.T) {
	families := func(names ...string) (out []format.KeyspaceEvidence) {
		for _, name := range names {
			out = append(out, format.KeyspaceEvidence{Name: name, Comparer: bytewise})
		}
		return out
	}
	for _, c := range []struct {
		path, kind string
		names      []string
		want       int
	}{
		{".", "rocksdb", []string{"default", "0", "0_expires", "1", "1_expires"}, 98}, {"flash", "rocksdb", []string{"default", "0", "0_expires"}, 98},
		{".", "rocksdb", []string{"default", "0", "1"}, 60}, {"x", "rocksdb", []string{"default", "0", "0_expires"}, 0},
		{".", "leveldb", []string{"default", "0"}, 0}, {".", "rocksdb", []string{"default", "0", "metadata"}, 0}, {".", "rocksdb", []string{"default"}, 0},
	} {
		ev := &format.Evidence{Stores: []format.StoreEvidence{{Path: c.path, Kind: c.kind, Keyspaces: families(c.names...)}}}
		if v := New().Detect(ev); v.Score != c.want {
			t.Errorf("%s %s %v: %d, want %d", c.kind, c.path, c.names, v.Score, c.want)
		}
	}
}

// TestDead: deleted keys come back with all elements and expiries, keys that exist do not, in each family.
func TestDead(t *testing.T) {
	d := testsst.NewDB(t)
	for id, name := range []string{"0", "0_expires", "1", "1_expires"} {
		d.Family(uint64(id)+1, name, bytewise)
	}
	row := func(key string) string { return string(newDialect.appendKey(nil, []byte(key))) }
	set, gone := string(unhex(t, rows["set"])), string(withText("gone"))
	d.Table(0, 1, testsst.Spec{}, testsst.Put(rowMetadata, 1, metadataID))
	d.Table(1, 1, testsst.Spec{}, testsst.Put(rowVersion, 2, "6.3.4\x00"), testsst.Put(row("back"), 3, gone),
		testsst.Put(row("live"), 4, gone),
		testsst.Put(row("s"), 5, set), testsst.Put(row("t"), 6, gone), testsst.Put(rowCount, 7, "12345678"))
	d.Table(1, 0, testsst.Spec{}, testsst.Del(row("back"), 10), testsst.Put(row("back"), 11, gone), testsst.Del(row("s"), 12),
		testsst.Del(row("t"), 13), testsst.Del(rowCount, 14))
	d.Table(3, 1, testsst.Spec{}, testsst.Put(row("only"), 8, gone))
	d.Table(3, 0, testsst.Spec{}, testsst.Del(row("only"), 15))
	src := formattest.Open(t, New(), d.Finish(), &format.OpenOptions{Store: rocks.Open})
	if got := src.Databases(); !slices.Equal(got, []string{"0"}) {
		t.Errorf("databases with keys: %q", got)
	}
	dead := src.(format.Undead)
	dbs, err := dead.DeadDatabases()
	if err != nil || !slices.Equal(dbs, []string{"0", "1"}) {
		t.Fatalf("databases %q, %v", dbs, err)
	}
	got := ""
	for _, db := range dbs {
		r, err := formattest.Walk(dead.DeadRecords(t.Context(), db, record.AllTypes, format.Span{},
			&format.Env{Now: formattest.Now, TempDir: t.TempDir()}, func([]byte, record.Type, string) {}))
		if err != nil {
			t.Fatal(err)
		}
		got += string(formattest.Lines(t, r))
	}
	for _, want := range []string{`"db":"0","type":"set","key":"cw==","expire_at_ms":4100000000000,"value":["bg==","bQ=="]`, `"db":"0","type":"string","key":"dA==","expire_at_ms":0,"value":"Z29uZQ=="`,
		`"db":"1","type":"string","key":"b25seQ==","expire_at_ms":0,"value":"Z29uZQ=="`} {
		if !strings.Contains(got, want) {
			t.Errorf("not there: %s", want)
		}
	}
	if n := strings.Count(got, "\n"); n != 3 {
		t.Errorf("%d deleted keys:\n%s", n, got)
	}
	if _, err := dead.DeadRecords(t.Context(), "2", record.AllTypes, format.Span{}, &format.Env{}, nil); err == nil {
		t.Error("database 2 is read")
	}
}

// TestScoreNaN: a score that is not a number is reported, once a record.
func TestScoreNaN(t *testing.T) {
	st, m := empty(t)
	put(st, "0", "z", payloadOf([]byte{3, 3, 1, 'a', 253, 1, 'b', 1, '7', 1, 'c', 253})) // zset, scores as text, 253 is NaN
	put(st, "0", "y", payloadOf([]byte{3, 1, 1, 'a', 1, '7'}))
	records, found, _ := read(t, m)
	if records != "0 zset \"y\" 0 a=/0\n0 zset \"z\" 0 a=/0 b=/0 c=/0\n" {
		t.Errorf("records\n%s", records)
	}
	kinds := strings.Join(found.Kinds(), " ")
	if kinds != "score-nan unclean-shutdown" || found.All[1].Severity != record.Warning {
		t.Errorf("findings %+v", found.All)
	}
}

// TestFamilies: families that are missing, unknown, or in another order.
func TestFamilies(t *testing.T) {
	_, m := empty(t)
	m.Declare(".")
	for name, c := range map[string]struct {
		families                  []string
		databases, kinds, classes string
	}{
		"no index":               {[]string{"default", "0"}, "0", "missing-ttl-row unclean-shutdown", "0: copied=1\n"},
		"no default":             {[]string{"0", "0_expires", "1_expires"}, "0", "missing-ttl-row unclean-shutdown", "0: copied=1\n"},
		"a gap":                  {[]string{"default", "0", "0_expires", "7", "8_expires"}, "0 7", "missing-ttl-row missing-ttl-row unclean-shutdown", "0: copied=1\n7: copied=1\n"},
		"an unknown family":      {[]string{"default", "0", "0_expires", "x"}, "0", "missing-ttl-row newer unclean-shutdown unknown-family", "0: copied=1\nx: malformed=1\n"},
		"a database in an index": {[]string{"default", "0", "0_expires", "x_expires"}, "0", "missing-ttl-row newer unclean-shutdown unknown-family", "0: copied=1\nx_expires: malformed=1\n"},
	} {
		m := formattest.NewMemory(t, New())
		st := m.FS.Dir(m.Dir)
		for _, family := range c.families {
			switch st.Len(family); {
			case dataset.IsNumber(family):
				put(st, family, "k", unhex(t, rows["embstr"]))
				st.Put(family, []byte(rowVersion), []byte("6.3.4\x00"))
				c.classes = strings.Replace(c.classes, family+": copied=1", family+": housekeeping=1 copied=1", 1)
			case strings.HasPrefix(family, "x"):
				st.Put(family, []byte("row"), nil)
			}
		}
		_, found, classes := read(t, m)
		if kinds := strings.Join(found.Kinds(), " "); kinds != c.kinds || classes != c.classes {
			t.Errorf("%s: findings %s, want %s\n%s", name, kinds, c.kinds, classes)
		}
		if got := strings.Join(m.Open(t).Databases(), " "); got != c.databases {
			t.Errorf("%s: databases %s", name, got)
		}
	}
	_, err := New().Open(t.Context(), t.TempDir(), &format.OpenOptions{Store: rocks.Open})
	if !errors.Is(err, store.ErrNotStore) {
		t.Errorf("an empty directory: %v", err)
	}
}

// TestDescribe: each kind of row, whole and damaged.
func TestDescribe(t *testing.T) {
	_, m := empty(t)
	src := m.Open(t)
	for _, c := range []struct{ family, key, value, want string }{
		{"0", "\x03\x3ce", string(unhex(t, rows["embstr"])), `string of "e" meta n1 until 1796672532665; key slot=15363 @0+2; key key="e" @2+1; value expiries=1 @0+4; value length of member=0 @4+4; ` +
			`value expiry=2026-12-07T19:42:12.665Z @8+8; value type=0 (string) @16+1; value mvcc=18446744073709551615 @17+8; value encoding=8 @25+1; ` +
			`value memory="\xd4\xc9\a\x01\x00\x00\x80\xb90\aR\xa2\x01\x00\x00\x06\x06\x01embst" @26+23; value text="embstr" @49+6`},
		{"0", "\x01\x00e", "", `key of "e" meta; key slot=1 @0+2; key key="e" @2+1; value undecoded="" @0+0; error slot 1, but the key has slot 15363, where the server looks for it | offset 0: number of expiries: need 4 bytes, have 0: too short`},
		{"0", "\x01", "\x00\x00\x00\x00\x4d", `key of "" meta; key undecoded="\x01" @0+1; value expiries=0 @0+4; value undecoded="M" @4+1; error offset 0: slot: need 2 bytes, have 1: too short | offset 4: type: 77: written by no known server`},
		{"1_expires", "\x00\x00\x00\x00\x00\x00\x00\x07k", "k", `expiry of "k" until 7; key expiry=1970-01-01T00:00:00.007Z @0+8; key key="k" @8+1; value key="k" @0+1`},
		{"1_expires", "\x00", "k", `expiry of ""; key undecoded="\x00" @0+1; error offset 0: time: need 8 bytes, have 1: too short`},
		{"default", rowMetadata, metadataID, `internal of ""; key name=` + rowMetadata + ` @0+26; value value="` + metadataID + `" @0+36`},
		{"default", string(newDialect.appendKey(nil, []byte("repl-offset"))), "12345678", `metadata of ""; key name=repl-offset @0+13; value value="12345678" @0+8`},
	} {
		if got := formattest.ShowRow(src.Describe("0", c.family, []byte(c.key), []byte(c.value))); got != c.want {
			t.Errorf("%s %q:\n%s, want\n%s", c.family, c.key, got, c.want)
		}
	}
	row := src.Describe("0", "0", newDialect.appendKey(nil, []byte("s")), unhex(t, rows["set"]))
	if got := formattest.ShowRow(row); row.Count != 2 || !strings.HasSuffix(got, `value elements=2 @30+5; value mvcc="\xfa\vmvcc-tstamp\x1418446744073709551615" @35+34; value version=9 @69+2; value checksum=4180204794186680277 @71+8`) {
		t.Errorf("a set is %s", got)
	}
	if src.Extra() != nil || src.Format().Name() != "keydbflash" {
		t.Error("files beside the store")
	}
}

// TestHotPaths: decoding rows allocates nothing, and reading records nothing per row.
func TestHotPaths(t *testing.T) {
	value, key := unhex(t, rows["embstr"]), newDialect.appendKey(nil, []byte("k"))
	if n := testing.AllocsPerRun(100, func() {
		v, err := decodeValue(value)
		if err == nil {
			_, err = newDialect.decodeString(nil, &v)
		}
		if err == nil {
			_, err = newDialect.decodeKey(key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for decoded rows", n)
	}
	st, m := empty(t)
	const n = 20000
	for i := range n {
		put(st, "0", fmt.Sprintf("k%06d", i), withText("v"))
	}
	src := m.Open(t)
	dst := make([]record.Element, 8)
	if allocs := testing.AllocsPerRun(1, func() {
		r := formattest.Records(t, src, "0", &format.Env{})
		defer r.Close()
		for {
			if _, err := r.Next(); err != nil {
				return
			}
			if _, err := r.Read(dst); err != nil {
				t.Fatal(err)
			}
		}
	}); allocs > n/10 {
		t.Errorf("%v allocations to read %d rows", allocs, n)
	}
}
