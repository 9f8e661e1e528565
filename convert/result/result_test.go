package result

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kvferry/record"
)

// TestNamesOfAnyBytes checks that a result survives encoding with any bytes in database names.
func TestNamesOfAnyBytes(t *testing.T) {
	const db = "\xff\xfe"
	in := &Result{N: 3, Parts: []PartDigest{{DB: db, Type: "hash", Digest: record.Digest{Records: 2}}},
		Expiring: []Expiring{{Until: 1700000000000,
			PartDigest: PartDigest{DB: db, Type: "hash", Digest: record.Digest{Records: 1, Elements: 4,
				Millis: record.Sum128{Hi: 1, Lo: 2}, Seconds: record.Sum128{Hi: 3, Lo: 4}, New: true}}, Fields: 6}},
		Ledger: Tallies{db + "/rows": {Entries: 5, Visible: 5}, "plain": {Entries: 1}},
		Losses: []LossKind{{Kind: "k", Samples: []Sample{{DB: db, Key: []byte("\x00\xff"), Detail: "d"}}}}}
	data, err := json.Marshal(in)
	if err != nil || !strings.Contains(string(data), `{"base64":"//4="}`) {
		t.Fatalf("%s, %v", data, err)
	}
	out := new(Result)
	if err := json.Unmarshal(data, out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%s, %v: %+v, want %+v", data, err, out, in)
	}
	for _, v := range []any{new(PartDigest), new(Expiring), new(Sample), new(Tallies)} {
		if err := json.Unmarshal([]byte("7"), v); err == nil {
			t.Errorf("%T is read from a number", v)
		}
	}
}

// TestSum checks that results add up, that unfinished tasks count as zero, and that a fingerprint can be rebuilt from
// its parts.
func TestSum(t *testing.T) {
	var f record.Fingerprint
	for _, p := range []record.Part{{DB: "1", Type: record.Set}, {DB: "0", Type: record.Set}, {DB: "0", Type: record.Hash}} {
		f.Add(p, record.Digest{Records: 1, Elements: 4})
	}
	var names []string
	for _, p := range Parts(&f) {
		names = append(names, string(p.DB)+" "+p.Type)
	}
	if got := strings.Join(names, ", "); got != "0 hash, 0 set, 1 set" {
		t.Error(got)
	}
	one := &Result{Parts: Parts(&f), Ledger: Tallies{"rows": {Entries: 5, Visible: 5}}, Expiring: []Expiring{{Until: 7}},
		Losses: []LossKind{{Kind: "k", Count: 2}}, Findings: []FindingKind{{Kind: "f", Severity: "error", Count: 3}}}
	got, err := Sum([]*Result{one, nil, one})
	if err != nil {
		t.Fatal(err)
	}
	tally := got.Ledger.Snapshot()["rows"]
	digest := got.Fingerprint.Parts()[record.Part{DB: "1", Type: record.Set}]
	if digest.Records != 2 || digest.Elements != 8 || tally.Visible != 10 || len(got.Expiring) != 2 ||
		got.Losses.List()[0].Count != 4 || got.Findings.List()[0].Count != 6 {
		t.Errorf("%+v", got)
	}
	if _, err := Sum([]*Result{{Parts: []PartDigest{{Type: "none"}}}}); err == nil {
		t.Error("a type that is none is added")
	}
}

// TestJudge checks that a loss is refused unless its kind is allowed or it is a note. The option to accept losses
// lists all kinds.
func TestJudge(t *testing.T) {
	losses := func() []LossKind {
		return []LossKind{{Kind: "a", Count: 1}, {Kind: "b", Count: 2}, {Kind: "n", Count: 3, Note: true}}
	}
	for allowed, want := range map[string]string{
		"":     "refused: x cannot hold everything: 1 × a, 2 × b; accept it with --allow-loss a,b",
		"a":    "refused: x cannot hold everything: 2 × b; accept it with --allow-loss a,b",
		"a b":  "<nil>",
		"a bc": "refused: x cannot hold everything: 2 × b; accept it with --allow-loss a,b",
	} {
		list := losses()
		err := Judge(list, "x", func(kind string) bool { return strings.Contains(" "+allowed+" ", " "+kind+" ") })
		if got := fmt.Sprint(err); got != want || list[2].Allowed || list[0].Allowed != strings.HasPrefix(allowed, "a") {
			t.Errorf("%q: %s, want %s; %+v", allowed, got, want, list)
		}
	}
}

// TestRefusedBecause checks that damage is attributed to the source, not to the target, and that options that avoid a
// loss come before the option that accepts it.
func TestRefusedBecause(t *testing.T) {
	damaged, module := LossKind{Kind: record.LossDamaged, Count: 1}, LossKind{Kind: "module", Count: 2, Avoid: "--x keeps it"}
	for _, tt := range []struct {
		losses []LossKind
		want   string
	}{
		{[]LossKind{damaged}, "refused: the source is damaged: 1 error; convert the rest with --allow-loss damaged"},
		{[]LossKind{module}, "refused: x cannot hold everything: 2 × module; --x keeps it, or accept it with --allow-loss module"},
		{[]LossKind{damaged, module}, "refused: the source is damaged: 1 error; x cannot hold everything: 2 × module; " +
			"--x keeps it, or accept it with --allow-loss damaged,module"},
	} {
		if got := (&LossError{Target: "x", Losses: tt.losses}).Error(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	losses := Losses{}
	losses.Add(record.Loss{Kind: "module"}, "0", &record.Header{Type: record.Other})
	losses.Add(record.Loss{Kind: "module", Avoid: "--x keeps it"}, "0", &record.Header{Type: record.Other})
	losses.Merge([]LossKind{{Kind: "b", Avoid: "--y"}})
	if list := losses.List(); list[1].Avoid != "--x keeps it" || list[0].Avoid != "--y" {
		t.Errorf("%+v", list)
	}
}

// TestStoredOfAnEarlierRun checks that findings in the journal are not written again, but are reported together with
// new ones.
func TestStoredOfAnEarlierRun(t *testing.T) {
	at := func(off int64) record.Finding {
		return record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Place: record.Place{File: "f", Off: off}}
	}
	s := Stored{OnLoss: func(string) {}}
	s.Adopt([]*Result{{Stores: []record.Finding{at(2), at(1)}}})
	s.Report(at(2))
	s.Report(at(3))
	if fresh := s.Unwritten(); len(fresh) != 1 || fresh[0].Place.Off != 3 {
		t.Errorf("%+v", fresh)
	}
	if lost := s.PassedOver(); len(lost) != 1 || lost[0].Count != 3 || lost[0].Kind != record.LossDamaged {
		t.Errorf("%+v", lost)
	}
}
