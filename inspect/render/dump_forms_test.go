package render

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"kvferry/inspect/dump"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/resp"
	"kvferry/record"
)

func id16(ms, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ms), seq)
}

// encode runs records through an encoder like a dump.
func encode(t *testing.T, e dump.Encoder, records ...func() (*record.Header, []record.Element)) (string, error) {
	t.Helper()
	out := e.AppendHead(nil)
	var err error
	for _, r := range records {
		h, elems := r()
		if out, err = e.AppendBegin(out, h); err != nil {
			return string(out), err
		}
		for i := range elems {
			if out, err = e.AppendElement(out, &elems[i]); err != nil {
				return string(out), err
			}
		}
		if out, err = e.AppendEnd(out); err != nil {
			return string(out), err
		}
	}
	return string(e.AppendTail(out)), nil
}

func of(h record.Header, elems ...record.Element) func() (*record.Header, []record.Element) {
	return func() (*record.Header, []record.Element) {
		h.Key = append([]byte{}, h.Key...)
		return &h, elems
	}
}

func head(t record.Type, key string) record.Header {
	return record.Header{DB: "0", Type: t, Key: []byte(key)}
}

// commands decodes commands, one per line, with arguments joined by spaces.
func commands(t *testing.T, s string) string {
	t.Helper()
	var out []string
	for s != "" {
		var n int
		head, rest, ok := strings.Cut(s, "\r\n")
		if !ok || head[0] != '*' {
			t.Fatalf("no command: %.40q", s)
		}
		for _, c := range head[1:] {
			n = n*10 + int(c-'0')
		}
		var args []string
		for range n {
			size, after, _ := strings.Cut(rest, "\r\n")
			m := 0
			for _, c := range size[1:] {
				m = m*10 + int(c-'0')
			}
			args = append(args, after[:m])
			rest = after[m+2:]
		}
		out = append(out, strings.Join(args, " "))
		s = rest
	}
	return strings.Join(out, "\n")
}

func TestRESP(t *testing.T) {
	pairs := record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("v")), []byte("g"), nil)
	stream := func(key string, last []byte) record.Header {
		h := head(record.Stream, key)
		h.Last = last
		return h
	}
	deleted := func(h record.Header, added uint64, most []byte) record.Header {
		h.Added, h.MaxDeleted = added, most
		return h
	}
	ttl := head(record.String, "t")
	ttl.ExpireMS = 5
	for _, c := range []struct {
		name    string
		records []func() (*record.Header, []record.Element)
		want    string
	}{
		{"expiry", []func() (*record.Header, []record.Element){of(ttl, record.Element{Value: []byte("v")})}, "SET t v\nPEXPIREAT t 5"},
		{"stream at its last id", []func() (*record.Header, []record.Element){of(stream("x", id16(5, 1)), record.Element{Name: id16(5, 1), Value: pairs})},
			"XADD x 5-1 f v g "},
		{"stream past its last id", []func() (*record.Header, []record.Element){of(stream("x", id16(9, 0)), record.Element{Name: id16(5, 1), Value: pairs})},
			"XADD x 5-1 f v g \nXSETID x 9-0"},
		{"stream without a last id", []func() (*record.Header, []record.Element){of(stream("x", nil), record.Element{Name: id16(5, 1), Value: pairs})},
			"XADD x 5-1 f v g "},
		{"stream of which entries were deleted", []func() (*record.Header, []record.Element){of(deleted(stream("x", id16(5, 1)), 7, id16(4, 2)), record.Element{Name: id16(5, 1), Value: pairs})},
			"XADD x 5-1 f v g \nXSETID x 5-1 ENTRIESADDED 7 MAXDELETEDID 4-2"},
		{"emptied stream of which entries were deleted", []func() (*record.Header, []record.Element){of(deleted(stream("x", id16(9, 0)), 3, id16(8, 0)))},
			"XADD x 9-0  \nXDEL x 9-0\nXSETID x 9-0 ENTRIESADDED 3 MAXDELETEDID 8-0"},
		{"emptied stream", []func() (*record.Header, []record.Element){of(stream("x", id16(9, 0)))}, "XADD x 9-0  \nXDEL x 9-0"},
		{"stream that never had an entry", []func() (*record.Header, []record.Element){of(stream("x", id16(0, 0)))},
			"XGROUP CREATE x kvferry $ MKSTREAM\nXGROUP DESTROY x kvferry"},
		{"empty stream of an unknown last id", []func() (*record.Header, []record.Element){of(stream("x", nil))},
			"XGROUP CREATE x kvferry $ MKSTREAM\nXGROUP DESTROY x kvferry"},
	} {
		got, err := encode(t, &resp.Encoder{DBs: []string{"0"}}, c.records...)
		if err != nil || commands(t, got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, commands(t, got), err, c.want)
		}
	}
}

func TestRESPDatabases(t *testing.T) {
	str := func(db, key string) func() (*record.Header, []record.Element) {
		h := head(record.String, key)
		h.DB = db
		return of(h, record.Element{Value: []byte("v")})
	}
	got, err := encode(t, &resp.Encoder{DBs: []string{"0", "3"}}, str("0", "a"), str("3", "a"), str("3", "b"))
	if want := "SELECT 0\nSET a v\nSELECT 3\nSET a v\nSET b v"; err != nil || commands(t, got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := encode(t, &resp.Encoder{DBs: []string{"main"}}, str("main", "a")); err != nil || commands(t, got) != "SET a v" {
		t.Errorf("a single database: %q, %v", got, err)
	}
	for _, db := range []string{"main", "03", "-1", ""} {
		if _, err := encode(t, &resp.Encoder{DBs: []string{"0", db}}, str("0", "a"), str(db, "a")); err == nil {
			t.Errorf("database %q: no error", db)
		}
	}
}

func TestRESPBatchesAndConflicts(t *testing.T) {
	var many []record.Element
	for range resp.MaxElements + 1 {
		many = append(many, record.Element{Value: []byte("v")})
	}
	got, err := encode(t, &resp.Encoder{}, of(head(record.List, "l"), many...))
	if lines := strings.Split(commands(t, got), "\n"); err != nil || len(lines) != 2 || lines[1] != "RPUSH l v" {
		t.Errorf("%d commands, %v", len(strings.Split(commands(t, got), "\n")), err)
	}
	big := record.Element{Name: make([]byte, resp.MaxBytes)}
	got, _ = encode(t, &resp.Encoder{}, of(head(record.Set, "s"), big, record.Element{Name: []byte("x")}))
	if n := strings.Count(commands(t, got), "SADD s"); n != 2 {
		t.Errorf("%d commands for a large member and a small one", n)
	}
	both := []func() (*record.Header, []record.Element){of(head(record.String, "k"), record.Element{Value: []byte("v")}),
		of(head(record.Set, "k"), record.Element{Name: []byte("m")}), of(head(record.Set, "l"), record.Element{Name: []byte("m")})}
	if _, err := encode(t, &resp.Encoder{}, both...); !errors.Is(err, resp.ErrSameName) {
		t.Errorf("a name under two types: %v", err)
	}
	e := &resp.Encoder{FirstType: true}
	if got, err := encode(t, e, both...); err != nil || commands(t, got) != "SET k v\nSADD l m" || e.Skipped != 1 {
		t.Errorf("%q, %v, %d skipped", got, err, e.Skipped)
	}
	if _, err := encode(t, &resp.Encoder{}, of(head(record.ZSet, "z"), record.Element{Score: math.NaN()})); err == nil {
		t.Error("a score that is not a number: no error")
	}
	if _, err := encode(t, &resp.Encoder{}, of(head(record.Stream, "x"), record.Element{Name: []byte("short")})); err == nil {
		t.Error("a short id: no error")
	}
}

func TestCSVForms(t *testing.T) {
	pairs := record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("v")), []byte("g,"), []byte(`"`))
	records := []func() (*record.Header, []record.Element){
		of(head(record.String, "a,b"), record.Element{Value: []byte("line\nbreak")}),
		of(head(record.List, "base64:x"), record.Element{Value: []byte("\xff")}, record.Element{}),
		of(head(record.ZSet, "z"), record.Element{Name: []byte("m"), Score: math.Inf(-1)}),
		of(head(record.Hash, "h"), record.Element{Name: []byte("f"), Value: []byte("v"), ExpireMS: 1700000000001}),
		of(head(record.Stream, "x"), record.Element{Name: id16(1, 2), Value: pairs}, record.Element{Name: id16(1, 3)}),
		of(head(record.Stream, "none")),
	}
	got, err := encode(t, &CSV{}, records...)
	want := strings.ReplaceAll(`db,type,key,expire_at_ms,index,id,field,value,member,score,field_expire_at_ms
0,string,"a,b",,,,,"line break",,,
0,list,base64:YmFzZTY0Ong=,,0,,,base64:/w==,,,
0,list,base64:YmFzZTY0Ong=,,1,,,,,,
0,zset,z,,,,,,m,-inf,
0,hash,h,,,,f,v,,,1700000000001
0,stream,x,,,1-2,f,v,,,
0,stream,x,,,1-2,"g,","""",,,
0,stream,x,,,1-3,,,,,
0,stream,none,,,,,,,,
`, "\n", "\r\n")
	got = strings.ReplaceAll(got, "line\nbreak", "line break")
	if err != nil || got != want {
		t.Errorf("%v\n%swant\n%s", err, got, want)
	}
	if got, _ := encode(t, &CSV{Base64: true},
		of(head(record.Set, "k"), record.Element{Name: []byte("m")})); !strings.HasSuffix(got, "0,set,aw==,,,,,,bQ==,,\r\n") {
		t.Errorf("all base64: %s", got)
	}
	if _, err := encode(t, &CSV{}, of(head(record.Stream, "x"), record.Element{Name: []byte("short")})); err == nil {
		t.Error("a short id: no error")
	}
	if _, err := encode(t, &CSV{}, of(head(record.Stream, "x"), record.Element{Name: id16(1, 1), Value: []byte{9}})); err == nil {
		t.Error("a cut pair: no error")
	}
}

func TestDocument(t *testing.T) {
	e := &Document{Lines: Lines{Encoder: jsonl.Encoder{}}}
	one := of(head(record.Set, "a"), record.Element{Name: []byte("m")})
	for range 2 { // an encoder can be reused
		got, err := encode(t, e, one, of(head(record.String, "b"), record.Element{Value: []byte("v")}))
		want := "[\n" + `{"db":"0","type":"set","key":"a","expire_at_ms":0,"value":["m"]},` + "\n" +
			`{"db":"0","type":"string","key":"b","expire_at_ms":0,"value":"v"}` + "\n]\n"
		if err != nil || got != want {
			t.Errorf("%v, %s", err, got)
		}
	}
}

// TestCSVSafe checks that with Safe no text cell starts like a formula, and numbers are unchanged.
func TestCSVSafe(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-x": "'-x", "@a": "'@a", "\tx": "'\tx", "plain": "plain",
		"": "", "=\"a\",b": `"'=""a"",b"`, "\xff": "base64:/w=="} {
		for _, safe := range []bool{false, true} {
			e := CSV{Safe: safe}
			got := string(e.text(nil, []byte(text)))
			if safe && got != want || !safe && strings.HasPrefix(got, "'") {
				t.Errorf("safe %t: %q is written %q", safe, text, got)
			}
		}
	}
	e := CSV{Safe: true}
	line, err := e.AppendBegin(nil, &record.Header{DB: "0", Type: record.ZSet, Key: []byte("=k")})
	if err == nil {
		line, err = e.AppendElement(line, &record.Element{Name: []byte("m"), Score: -1.5})
	}
	if string(line) != "0,zset,'=k,,,,,,m,-1.5,\r\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}

// TestWide checks the table of hashes: its columns, its cells, and what it refuses.
func TestWide(t *testing.T) {
	field := func(name, value string) record.Element {
		return record.Element{Name: []byte(name), Value: []byte(value)}
	}
	dated := head(record.Hash, "k:1")
	dated.ExpireMS = 1800000000123
	hashes := []func() (*record.Header, []record.Element){of(dated, field("b", "x,y"), field("a", "")),
		of(head(record.Hash, "\xff"), field("key", "odd"), field("field:a", "\xfe"), field("a", "=1")), of(head(record.Hash, "none"), field("base64:x", "z"))}
	names := new(Columns)
	if text, err := encode(t, names, hashes...); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	const wide = "db,key,expire_at,a,b,base64:YmFzZTY0Ong=,field:field:a,field:key\r\n" +
		"0,k:1,2027-01-15T08:00:00.123Z,\"\",\"x,y\",,,\r\n0,base64:/w==,,'=1,,,base64:/g==,odd\r\n0,none,,,,z,,\r\n"
	if got, err := encode(t, &Wide{Cells: CSV{Safe: true}, Columns: names.Names(), Limit: 1000}, hashes...); got != wide ||
		err != nil {
		t.Errorf("got %q, %v\nwant %q", got, err, wide)
	}
	const chosen = "db,key,expire_at,no,b\r\n0,k:1,2027-01-15T08:00:00.123Z,,\"x,y\"\r\n0,base64:/w==,,,\r\n0,none,,,\r\n"
	if got, err := encode(t, &Wide{Columns: []string{"no", "b"}, Chosen: true, Limit: 1000}, hashes...); got != chosen ||
		err != nil {
		t.Errorf("got %q, %v\nwant %q", got, err, chosen)
	}
	for want, e := range map[string]*Wide{
		`hash "k:1" has a field "b" that it lacked before`: {Columns: []string{"a"}, Limit: 1000},
		`hash "k:1" makes a line of more than 30 bytes`:    {Columns: names.Names(), Limit: 30},
	} {
		if _, err := encode(t, e, hashes...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var many []record.Element
	for i := range maxColumns + 1 {
		many = append(many, field(strings.Repeat("x", i), ""))
	}
	if _, err := encode(t, names, of(head(record.Hash, "k"), many[1:]...)); err != nil {
		t.Error(err)
	}
	long := field(strings.Repeat("y", maxColumnBytes+1), "")
	for want, elems := range map[string][]record.Element{"more than 1000 different fields (\"xxx": many,
		"more than 0 different": {long}} {
		_, err := encode(t, names, of(head(record.Hash, "k"), elems...))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--columns") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSQL checks the literals of each type. TestDumpSQL has a database made of them.
func TestSQL(t *testing.T) {
	dated := head(record.Hash, "it's")
	dated.ExpireMS = 1800000000123
	pairs := record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("1")), []byte("f"), []byte("2"))
	got, err := encode(
		t, new(SQL), of(dated, record.Element{Name: []byte("\xff"), Value: []byte("a\r\nb"), ExpireMS: 1800000000000}),
		of(head(record.List, "l"), record.Element{Value: []byte("x\x00")}, record.Element{Value: []byte("a\nb")}),
		of(head(record.Set, "s"), record.Element{Name: []byte("m")}),
		of(head(record.ZSet, "z"), record.Element{Name: []byte("m"), Score: 1.5}, record.Element{Score: math.Inf(1)},
			record.Element{Score: math.Inf(-1)}, record.Element{Score: math.NaN()}),
		of(head(record.Stream, "x"), record.Element{Name: id16(5, 1), Value: pairs}, record.Element{Name: id16(6, 0)},
			record.Element{Kind: record.Group}),
		of(head(record.Stream, "empty")), of(head(record.String, "v"), record.Element{Value: nil}),
		of(head(record.Other, "o"), record.Element{Name: []byte("json"), Value: []byte("{}")}))
	_, got, _ = strings.Cut(got, sqlHead)
	got, tail, _ := strings.Cut(got, sqlTail)
	want := strings.Join([]string{
		`"hash" VALUES ('0','it''s','2027-01-15T08:00:00.123Z',X'ff',CAST(X'610d0a62' AS TEXT),'2027-01-15T08:00:00.000Z');`,
		`"list" VALUES ('0','l',NULL,0,X'7800');`, "\"list\" VALUES ('0','l',NULL,1,'a\nb');", `"set" VALUES ('0','s',NULL,'m');`,
		`"zset" VALUES ('0','z',NULL,'m',1.5);`, `"zset" VALUES ('0','z',NULL,'',9e999);`, `"zset" VALUES ('0','z',NULL,'',-9e999);`,
		`"zset" VALUES ('0','z',NULL,'',NULL);`, `"stream" VALUES ('0','x',NULL,'5-1','f','1');`, `"stream" VALUES ('0','x',NULL,'5-1','f','2');`,
		`"stream" VALUES ('0','x',NULL,'6-0',NULL,NULL);`, `"stream" VALUES ('0','empty',NULL,NULL,NULL,NULL);`, `"string" VALUES ('0','v',NULL,'');`,
		`"other" VALUES ('0','o',NULL,'json','{}');`, ""}, "\nINSERT INTO ")
	got = "\nINSERT INTO " + strings.TrimPrefix(got, "INSERT INTO ")
	if got != "\nINSERT INTO "+strings.TrimSuffix(want, "INSERT INTO ") || err != nil || tail != "" {
		t.Errorf("got %s, %v, %q\nwant %s", got, err, tail, want)
	}
	if got, err := encode(t, new(SQL), of(head(record.Stream, "x"), record.Element{Name: []byte("short")})); err == nil {
		t.Errorf("a damaged entry: %s", got)
	}
	if got, err := encode(
		t, new(SQL), of(head(record.Stream, "x"), record.Element{Name: id16(5, 1), Value: []byte("\x05ab")})); err == nil {
		t.Errorf("a damaged pair: %s", got)
	}
}
