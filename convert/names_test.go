package convert

import (
	"encoding/json"
	"reflect"
	"testing"

	"kvferry/record"
)

// TestNamesOfAnyBytes: what a journal has is what was put into it, whatever databases are called.
func TestNamesOfAnyBytes(t *testing.T) {
	const db, other = "\xff\xfe", "naïve\u202e"
	in := entry{
		Plan: &identity{Plan: &Plan{DBs: names{db, other}, TargetDBs: names{other, db}, Tasks: []Task{{N: 1, DB: db, TargetDB: other, Bytes: 7}}}},
		Task: &taskResult{N: 3, Parts: []PartDigest{{DB: db, Type: "hash", Digest: record.Digest{Records: 2}}},
			Ledger: tallies{db + "/rows": {Entries: 5, Visible: 5}, "plain": {Entries: 1}},
			Losses: []LossKind{{Kind: "k", Samples: []Sample{{DB: db, Key: []byte("\x00\xff"), Detail: "d"}}}}},
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out entry
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%s\n%+v\n%+v", data, in.Task, out.Task)
	}
}
