package keydbflash_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/testkit/formattest"
	"kvferry/keydbflash"
	"kvferry/record"
)

// goldenNow is after the golden database was written, and before its unexpired records expire.
var goldenNow = time.Unix(1_800_000_000, 0)

const golden = "keydbflash-basic"

// dumped is a line of a dump.
type dumped struct {
	DB, Type, Key string
	ExpireMS      int64 `json:"expire_at_ms"`
	Value         json.RawMessage
	Members       map[string]int64 `json:"member_expire_at_ms"`
}

// lines dumps a source like kvferry dump, its spans one after the other, and sorts the lines by key.
func lines(t testing.TB, src format.Source, spans int, e format.Env) (out []byte) {
	t.Helper()
	dbs := src.Databases()
	slices.Sort(dbs) // as CompareLines has them
	for _, db := range dbs {
		list, err := src.Split(db, record.AllTypes, spans)
		if err != nil {
			t.Fatal(err)
		}
		var some [][]byte
		for _, span := range list {
			env := e
			sel := filter.Selection{}
			o := sorted.Options{TempDir: t.TempDir()}
			r := sorted.Records(formattest.RecordsOf(t, src, db, record.AllTypes, span, &env).Reader, o)
			some = append(some, formattest.Lines(t, sel.Apply(context.Background(), r, filter.ApplyOptions{Now: e.Now})))
		}
		if spans > 1 && len(list) < 2 {
			t.Errorf("database %s has one span", db)
		}
		out = append(out, bytes.Join(some, nil)...)
	}
	return out
}

// parse splits lines into lines of a truth file, with elements of unordered types sorted, and expiries of fields.
func parse(t testing.TB, b []byte) (plain []byte, all map[string]dumped) {
	t.Helper()
	all = map[string]dumped{}
	for _, l := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var d dumped
		if err := json.Unmarshal(l, &d); err != nil {
			t.Fatal(err)
		}
		var elems []json.RawMessage
		if d.Type == "hash" || d.Type == "set" || d.Type == "zset" {
			if err := json.Unmarshal(d.Value, &elems); err != nil {
				t.Fatal(err)
			}
			d.Members = map[string]int64{}
			for i := range elems {
				var f []any
				if json.Unmarshal(elems[i], &f) == nil && len(f) == 3 {
					d.Members[f[0].(string)] = int64(f[2].(float64))
					elems[i], _ = json.Marshal(f[:2])
				}
			}
			slices.SortFunc(elems, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
			d.Value, _ = json.Marshal(elems)
		}
		all[d.DB+"/"+d.Key] = d
		key, _ := json.Marshal(d.Key)
		if d.Type != "other" {
			plain = fmt.Appendf(plain, `{"db":%q,"type":%q,"key":%s,"expire_at_ms":%d,"value":%s}`+"\n", d.DB, d.Type, key,
				d.ExpireMS, d.Value)
		}
	}
	return plain, all
}

// TestGolden: records equal the real server's replies, read at once and in spans.
func TestGolden(t *testing.T) {
	src := formattest.OpenGolden(t, keydbflash.New(), golden)
	truth, _ := parse(t, fixtures.Truth(t, golden))
	var totals []string
	for _, spans := range []int{1, 7} {
		var found formattest.Findings
		var ledger record.Ledger
		plain, all := parse(
			t, lines(t, src, spans, format.Env{Now: goldenNow, Ledger: &ledger, Report: found.Report, Deep: true}))
		formattest.CheckLedger(t, &ledger)
		found.CheckNone(t, record.Error)
		formattest.CompareLines(t, plain, truth)
		expiring := checkExtra(t, all)
		for _, kind := range []string{"member-expiry", "stale-ttl-rows", "missing-ttl-row"} {
			n := len(slices.DeleteFunc(found.Kinds(), func(k string) bool { return k != kind }))
			if want := map[string]int{"member-expiry": expiring, "stale-ttl-rows": 2}[kind]; n != want {
				t.Errorf("%d findings %s, want %d", n, kind, want)
			}
		}
		total := ""
		for _, ks := range src.Keyspaces() {
			total += ks.Name + ": " + formattest.Classes(&ledger, ks.Name) + "\n"
		}
		totals = append(totals, total)
	}
	if totals[0] != totals[1] {
		t.Errorf("rows at once:\n%s\nin spans:\n%s", totals[0], totals[1])
	}
	t.Log(totals[0])
}

// checkExtra compares data missing from truth files: expiries of fields, and cron jobs. It returns the number of sets
// and sorted sets with expiring members.
func checkExtra(t *testing.T, got map[string]dumped) (expiring int) {
	t.Helper()
	f, err := os.Open("../fixtures/golden/" + golden + ".extra.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	fields, others := 0, 0
	for dec := json.NewDecoder(z); ; {
		var want dumped
		if err := dec.Decode(&want); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		have, ok := got[want.DB+"/"+want.Key]
		switch {
		case !ok:
			t.Errorf("%+v is missing", want)
		case want.Type == "unknown":
			others++
			if have.Type != "other" || have.ExpireMS != 0 {
				t.Errorf("a cron job is %+v", have)
			}
		case have.Type == "hash":
			fields += len(want.Members)
			if len(have.Members) != len(want.Members) {
				t.Errorf("%+v: %d fields expire, want %d", want, len(have.Members), len(want.Members))
			}
			for name, ms := range want.Members {
				if have.Members[name] != ms {
					t.Errorf("%s: field %s expires %d, want %d", want.Key, name, have.Members[name], ms)
				}
			}
		case len(want.Members) > 0:
			expiring++
		}
	}
	if fields < 20 || others != 3 || expiring < 20 {
		t.Errorf("%d fields that expire, %d cron jobs, %d sets with members that do", fields, others, expiring)
	}
	return expiring
}
