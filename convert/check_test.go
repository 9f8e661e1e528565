package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// TestCheck checks that a conversion that is repeated without writing expects what the first one wrote, loses what it
// lost, and notices every other target.
func TestCheck(t *testing.T) {
	records := fake.Dataset(2)
	b := newBench(t, records)
	b.to.Bounds.SameName, b.to.Groups = false, []record.TypeSet{record.AllTypes}
	b.o.Rename = true
	rep := b.run()
	before := b.tree()
	again, err := Check(context.Background(), &b.o, false)
	if err != nil || !reflect.DeepEqual(again.Parts, rep.Parts) || len(again.Losses) != len(rep.Losses) {
		t.Fatalf("%v: %+v, want %+v", err, again, rep)
	}
	if b.tree() != before {
		t.Error("the target changed")
	}
	b.leaves("dst", "dst.kvferry-report.json", "src")
	records[0].Key = append(records[0].Key, 'x')
	other := newBench(t, records)
	other.to.Bounds.SameName, other.to.Groups, other.o.Rename = false, b.to.Groups, true
	other.run()
	if err := errors.Join(os.RemoveAll(b.o.Target.Path),
		os.CopyFS(b.o.Target.Path, os.DirFS(filepath.Join(other.dir, "dst")))); err != nil {
		t.Fatal(err)
	}
	var proof *ProofError
	if again, err := Check(context.Background(), &b.o, false); !errors.As(err, &proof) || len(proof.Parts) == 0 || again == nil {
		t.Errorf("another target: %v", err)
	}
	if err := os.RemoveAll(b.o.Target.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(context.Background(), &b.o, false); err == nil {
		t.Error("no target is no error")
	}
	b.o.Target.Address = "redis://x"
	if _, err := Check(context.Background(), &b.o, false); err == nil {
		t.Error("a server is no error")
	}
}
