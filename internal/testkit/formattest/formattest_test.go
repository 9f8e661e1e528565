package formattest

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failures returns the failures of a check; "" if it passes.
func failures(t *testing.T, check func(t testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r)
	}()
	<-done
	return strings.Join(r.failures, "; ")
}

// records is a reader of records in memory that ends with err.
type records struct {
	headers []record.Header
	elems   []record.Element // of each record
	read    int
	err     error
}

func (r *records) Next() (*record.Header, error) {
	if len(r.headers) == 0 {
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	}
	h := r.headers[0]
	r.headers, r.read = r.headers[1:], 0
	return &h, nil
}

func (r *records) Read(dst []record.Element) (int, error) {
	if r.read == len(r.elems) {
		return 0, io.EOF
	}
	n := copy(dst, r.elems[r.read:])
	r.read += n
	return n, nil
}

func (r *records) Heavy() bool { return false }

func (r *records) End(*record.Record) error { return nil }

func (r *records) Close() error { return nil }

func TestLines(t *testing.T) {
	header := func(key string) record.Header { return record.Header{DB: "0", Type: record.Set, Key: []byte(key)} }
	expired := header("old")
	expired.Expired = true
	var nine []record.Element
	for i := range 9 {
		nine = append(nine, record.Element{Name: []byte{byte('a' + i)}})
	}
	r := record.Gather(&records{headers: []record.Header{expired, header("k")}, elems: nine}, nil)
	got := string(Lines(t, r))
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `"aw=="`) || !strings.Contains(got, `"aQ=="`) {
		t.Errorf("rendered %s", got)
	}
	if got := Lines(t, record.Gather(&records{headers: []record.Header{header("empty")}}, nil)); len(got) > 0 {
		t.Errorf("an empty record: %s", got)
	}
	broken := errors.New("broken")
	if got := failures(t, func(t testing.TB) { Lines(t, record.Gather(&records{err: broken}, nil)) }); got != "broken" {
		t.Errorf("a reader that breaks: %q", got)
	}
}

func TestCompareLines(t *testing.T) {
	line := func(typ, key, value string) string {
		return fmt.Sprintf(`{"db":"0","type":%q,"key":%q,"expire_at_ms":0,"value":%s}`+"\n", typ, key, value)
	}
	str, set, zset := line("string", "aw==", `"dg=="`), line("set", "aQ==", `["bQ=="]`), line("zset", "aw==", `[["bQ==","1.50"]]`)
	dump := set + str + zset
	for name, c := range map[string]struct{ got, want, fails string }{
		"the same by type":   {dump, str + set + zset, ""},
		"a score otherwise":  {dump, str + set + line("zset", "aw==", `[["bQ==","15e-1"]]`), ""},
		"another score":      {dump, set + str + line("zset", "aw==", `[["bQ==","2"]]`), "record 2"},
		"another value":      {dump, set + line("string", "aw==", `"dw=="`) + zset, "record 1"},
		"one more":           {dump, set + str, "3 records, want 2"},
		"one less":           {set + str, dump, "2 records, want 3"},
		"no JSON in a value": {line("set", "aQ==", `[`), set, "invalid character"},
		"no JSON":            {"nothing", dump, "line nothing"},
		"no JSON wanted":     {dump, "nothing", "line nothing"},
		"no score":           {line("zset", "aw==", `[["bQ==","x"]]`), zset, "invalid syntax"},
		"no pair":            {line("zset", "aw==", `["bQ=="]`), zset, "is no member and score"},
	} {
		got := failures(t, func(t testing.TB) { CompareLines(t, []byte(c.got), []byte(c.want)) })
		if c.fails == "" && got != "" || !strings.Contains(got, c.fails) {
			t.Errorf("%s: fails with %q, want %q", name, got, c.fails)
		}
	}
}

func TestFindings(t *testing.T) {
	var f Findings
	if got := f.Kinds(); got == nil || len(got) > 0 {
		t.Errorf("kinds of nothing: %#v", got)
	}
	f.Report(record.Finding{Kind: "b", Severity: record.Warning})
	f.Report(record.Finding{Kind: "a"})
	f.Report(record.Finding{Kind: "b", Severity: record.Error})
	if got := f.Kinds(); !slices.Equal(got, []string{"a", "b", "b"}) {
		t.Errorf("kinds %q", got)
	}
	for from, want := range map[record.Severity]int{record.Note: 3, record.Warning: 2, record.Error: 1} {
		got := failures(t, func(t testing.TB) { f.CheckNone(t, from) })
		if n := strings.Count(got, "finding"); n != want {
			t.Errorf("from %v: %d failures, want %d", from, n, want)
		}
	}
}

func TestLedgerChecks(t *testing.T) {
	var l record.Ledger
	tally := record.Tally{Entries: 3, Visible: 3}
	tally.Rows[record.Copied], tally.Rows[record.Housekeeping] = 2, 1
	l.Add("kv", &tally)
	if got := Classes(&l, "kv"); got != "housekeeping=1 copied=2" || Classes(&l, "nowhere") != "" {
		t.Errorf("classes %q", got)
	}
	CheckLedger(t, &l)
	CheckClasses(t, &l, record.Copied, record.Housekeeping)
	if got := failures(t, func(t testing.TB) { CheckClasses(t, &l, record.Copied) }); got != "kv: housekeeping=1 copied=2" {
		t.Errorf("a class that should not be there: %q", got)
	}
	l.Add("kv", &record.Tally{Entries: 1, Visible: 1})
	if got := failures(t, func(t testing.TB) { CheckLedger(t, &l) }); got == "" {
		t.Error("a row that is not classified passes")
	}
}

func TestCheckEqual(t *testing.T) {
	read := func(ms int64) *record.Fingerprint {
		h := record.Header{DB: "0", Type: record.Set, Key: []byte("k"), ExpireMS: ms}
		return Sum(t, record.Gather(&records{headers: []record.Header{h}, elems: []record.Element{{Name: []byte("m")}}}, nil))
	}
	CheckEqual(t, read(1000), read(1), true)
	if got := failures(t, func(t testing.TB) { CheckEqual(t, read(1000), read(1), false) }); !strings.Contains(got, "database 0, set") {
		t.Errorf("expiries that differ: %q", got)
	}
	if got := failures(t, func(t testing.TB) {
		CheckEqual(t, Sum(t, record.Gather(&records{}, nil)), Sum(t, record.Gather(&records{}, nil)), true)
	}); got != "nothing was written" {
		t.Errorf("nothing: %q", got)
	}
	if got := failures(t, func(t testing.TB) { Sum(t, record.Gather(&records{err: io.ErrUnexpectedEOF}, nil)) }); got == "" {
		t.Error("a reader that breaks has a sum")
	}
}

func TestLengths(t *testing.T) {
	var got []string
	r := record.Walk(NewLengths([]int{0, 2}, record.Of(record.String, record.Hash), false))
	elems := make([]record.Element, 4)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		s := fmt.Sprintf("%s %q", h.Type, h.Key)
		for {
			n, err := r.Read(elems)
			if err == io.EOF {
				break
			}
			for _, e := range elems[:n] {
				s += fmt.Sprintf(" %s=%s", e.Name, e.Value)
			}
		}
		got = append(got, s)
	}
	want := []string{`string "" =1 of 0 `, `hash "" 3 of 0 =3  2 of 0 =2  1 of 0 =1 `}
	for _, k := range []string{"aa", "bb", "cc"} {
		want = append(want, fmt.Sprintf(`string %q =1 of 2 %.1s`, k, k),
			fmt.Sprintf(`hash %q 3 of 2 %.1[2]s=3  2 of 2 %.1[2]s=2  1 of 2 %.1[2]s=1 `, k, k))
	}
	if !slices.Equal(got, want) {
		t.Errorf("read\n%q, want\n%q", got, want)
	}
	named := NewLengths([]int{1}, record.Of(record.Set, record.ZSet, record.List), true)
	if got, again := Sum(t, named), Sum(
		t, NewLengths([]int{1}, record.Of(record.Set, record.ZSet, record.List), true)); got.Diff(again, false) != nil {
		t.Error("read twice, differently")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestSink(t *testing.T) {
	b, err := Sink{}.Create("", store.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := b.Run("default", 0, 0)
	err = errors.Join(err, b.Keyspace("default", store.Bytewise), run.Append(nil, nil), run.Close(), b.Adopt(nil), b.Finish())
	if err != nil {
		t.Error(err)
	}
	b.Abort()
	if got, err := b.Tables(0); got != nil || err != nil {
		t.Errorf("tables %v", got)
	}
}
