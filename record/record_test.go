package record

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTypeNames(t *testing.T) {
	for _, typ := range AllTypes.Types() {
		got, err := ParseType(typ.String())
		if err != nil || got != typ {
			t.Errorf("ParseType(%q) = %v, %v", typ, got, err)
		}
	}
	if _, err := ParseType("zsets"); err == nil || !strings.Contains(err.Error(), `"zsets"`) {
		t.Errorf("ParseType of an unknown name: %v", err)
	}
	if s := Type(NumTypes).String(); s != "type(8)" {
		t.Errorf("the type after the last prints %s", s)
	}
	if s := Type(99).String(); s != "type(99)" {
		t.Errorf("Type(99) prints %s", s)
	}
	if s := Of(ZSet, String).String(); s != "string,zset" {
		t.Errorf("set prints %s", s)
	}
	if n := len(AllTypes.Types()); n != 7 {
		t.Errorf("%d types", n)
	}
}

func TestClassAndSeverityNames(t *testing.T) {
	seen := map[string]bool{}
	for c := Malformed; int(c) < NumClasses; c++ {
		if name := c.String(); name == "" || seen[name] {
			t.Errorf("class %d is named %q", c, name)
		}
		seen[c.String()] = true
	}
	for s := Note; s <= Error; s++ {
		if got, err := ParseSeverity(s.String()); err != nil || got != s {
			t.Errorf("ParseSeverity(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseSeverity("x"); err == nil {
		t.Error("a severity named x")
	}
	if Class(NumClasses).String() != "class(12)" || Class(77).String() != "class(77)" || Severity(9).String() != "severity(9)" ||
		(Error+1).String() != "severity(3)" {
		t.Error("unknown values print", Class(77), Severity(9))
	}
}

func TestCorruptErrorSaysWhatIsKnown(t *testing.T) {
	short := Short(7, "version", 4, 2)
	short.Format, short.Keyspace, short.Key = "blackwidow", "hashes/data_cf", []byte("\x03\x00")
	want := `blackwidow hashes/data_cf key "\x03\x00": offset 7: version: need 4 bytes, have 2: too short`
	if short.Error() != want {
		t.Errorf("got  %s\nwant %s", short, want)
	}
	if !errors.Is(short, ErrShort) {
		t.Error("does not unwrap to ErrShort")
	}
	file := &CorruptError{File: "000012.sst", Off: 99, Err: errors.New("checksum")}
	if file.Error() != "000012.sst: offset 99: checksum" {
		t.Errorf("got %s", file)
	}
	bare := &CorruptError{Off: 1, Err: io.ErrUnexpectedEOF}
	if bare.Error() != "offset 1: unexpected EOF" {
		t.Errorf("got %s", bare)
	}
	whole := &CorruptError{File: "000012.sst", Off: NoOffset, Field: "file size", Err: errors.New("3 bytes")}
	whole.Shift(7)
	if whole.Error() != "000012.sst: file size: 3 bytes" {
		t.Errorf("without an offset: %s", whole)
	}
	first := &CorruptError{File: "000012.sst", Err: errors.New("checksum")}
	if first.Error() != "000012.sst: offset 0: checksum" {
		t.Errorf("at the beginning: %s", first)
	}
	first.Shift(7)
	if first.Off != 7 {
		t.Errorf("shifted to %d", first.Off)
	}
	if a, b := whole.Place("a"), first.Place("b"); a != (Place{File: "a", Off: NoOffset, Level: -1}) ||
		b != (Place{File: "b", Off: 7, Level: -1}) {
		t.Errorf("places %+v and %+v", a, b)
	}
	for place, want := range map[Place]string{
		{File: "a", Level: -1}:                `{"file":"a","offset":0,"level":-1}`,
		{File: "a", Off: NoOffset, Level: 2}:  `{"file":"a","level":2}`,
		{File: "a", Off: 7, Level: 1, Seq: 5}: `{"file":"a","offset":7,"level":1,"seq":5}`,
		{Level: -1}:                           `{"level":-1}`,
	} {
		b, err := json.Marshal(place)
		if err != nil || string(b) != want {
			t.Errorf("%+v is %s, %v", place, b, err)
		}
		var back Place
		if err := json.Unmarshal(b, &back); err != nil || back != place {
			t.Errorf("%s is %+v, %v", b, back, err)
		}
	}
	if q := Quote(make([]byte, 65)); !strings.HasSuffix(q, `"…`) || strings.Count(q, `\x00`) != 64 {
		t.Errorf("a long key prints as %s", q)
	}
}

func TestLedgerAddsUp(t *testing.T) {
	var l, m Ledger
	tally := Tally{Entries: 10, Visible: 4, Superseded: 2, Tombstones: 1, RangeDeleted: 2, Folded: 1}
	tally.Rows[Copied], tally.Rows[Stale] = 3, 1
	l.Add("hashes/data_cf", &tally)
	m.Merge(&l)
	m.Merge(&l)
	if got := m.Snapshot()["hashes/data_cf"]; got.Entries != 20 || got.Rows[Copied] != 6 || got.Folded != 2 {
		t.Errorf("merged twice: %+v", got)
	}
	if err := m.Check(); err != nil {
		t.Errorf("sound ledger: %v", err)
	}
	tally.Rows[Copied]++
	l.Add("bad", &tally)
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "ledger of bad: 5 rows classified, 4 rows read") {
		t.Errorf("a row too many: %v", err)
	}
	tally.Rows[Copied]--
	tally.Entries++
	if err := tally.Check(); err == nil || !strings.Contains(err.Error(), "10 entries explained, 11 entries read") {
		t.Errorf("an entry too many: %v", err)
	}
	(*Ledger)(nil).Add("x", &tally)
}
