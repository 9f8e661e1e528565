package convert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
)

// assembled returns a conversion in two parts whose target is assembled.
func assembled(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, fake.Dataset(2))
	b.crashable("never")
	b.part(1, 2)
	b.part(2, 2)
	b.assemble()
	return b
}

func (b *bench) assemble() {
	b.t.Helper()
	if rep, err := Assemble(context.Background(), &b.o); err != nil || rep != nil {
		b.t.Fatal(rep, err)
	}
}

// prove proves a part of the target and requires success.
func (b *bench) prove(k, n int) *ProofPart {
	b.t.Helper()
	rep, err := ProvePart(context.Background(), &b.o, pass.Part{K: k, N: n})
	if err != nil {
		b.t.Fatalf("part %d/%d: %v", k, n, err)
	}
	return rep
}

// TestProofInParts checks that a target is that of one run whichever parts of it were proved by other processes, and that
// the parts have read each record once.
func TestProofInParts(t *testing.T) {
	want, tree := wholeTree(t)
	many := 100 // more parts than tasks
	if testing.Short() {
		many = 12
	}
	for _, n := range []int{0, 1, 3, many} {
		for _, left := range []int{0, 1} { // parts that no process proves
			b := assembled(t)
			var records int64
			for k := 1; k <= n-left; k++ {
				b.o.Workers = k%3 + 1
				rep := b.prove(k, n)
				for _, p := range rep.Fingerprint {
					records += p.Records
				}
				if again := b.prove(k, n); rep.Already || !again.Already || len(again.Fingerprint) != len(rep.Fingerprint) {
					t.Errorf("%+v, again %+v", rep, again)
				}
			}
			if n > 1 && left == 0 && records != want.Records() {
				t.Errorf("%d parts have read %d records", n, records)
			}
			if n == 3 {
				b.prove(2, 5) // of another division, of which less is there
				b.killedIn("noted", "0/0")
			}
			rep := b.finish()
			if b.tree() != tree || !rep.Proof.Done || rep.Proof.Parts != max(0, n-left) {
				t.Errorf("%d parts, %d left: %+v", n, left, rep.Proof)
			}
			if again := b.prove(1, 3); !again.Already {
				t.Errorf("of a finished target: %+v", again)
			}
			if rep, err := Assemble(context.Background(), &b.o); err != nil || rep == nil {
				t.Errorf("of a finished target: %+v, %v", rep, err)
			}
		}
	}
}

// TestProofAtOnce checks that several processes may prove the same parts at once, with --temp-dir or without.
func TestProofAtOnce(t *testing.T) {
	_, tree := wholeTree(t)
	b := assembled(t)
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		o := b.o
		if i%2 == 0 {
			o.TempDir = t.TempDir()
		}
		wg.Go(func() { _, errs[i] = ProvePart(context.Background(), &o, pass.Part{K: i%3 + 1, N: 3}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if half, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry/parts/*.half")); err != nil || len(half) > 0 {
		t.Errorf("left: %q, %v", half, err)
	}
	if rep := b.finish(); rep.Proof.Parts != 3 || b.tree() != tree {
		t.Errorf("%+v", rep.Proof)
	}
}

// TestProofIsOfWhatIsPublished checks that proofs of other files, or with other records, do not count.
func TestProofIsOfWhatIsPublished(t *testing.T) {
	data := func(b *bench, name string) string { return filepath.Join(b.dir, "dst.kvferry", "data", name) }
	b := assembled(t)
	if err := os.Truncate(data(b, "000001.json"), 7); err != nil {
		t.Fatal(err)
	}
	if _, err := ProvePart(context.Background(), &b.o, pass.Part{K: 1, N: 2}); err == nil || !strings.Contains(err.Error(), "000001.json has 7 bytes") {
		t.Errorf("changed before the proof: %v", err)
	}

	b = assembled(t)
	b.prove(1, 1)
	if err := os.Truncate(data(b, "000001.json"), 7); err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(context.Background(), &b.o); err == nil {
		t.Error("changed after the proof: published")
	}

	b = assembled(t)
	b.prove(1, 2)
	b.prove(2, 2)
	proofs, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry/parts/proof-*"))
	if err != nil || len(proofs) != 2 {
		t.Fatal(proofs, err)
	}
	text, err := os.ReadFile(proofs[0])
	if err == nil {
		err = os.WriteFile(proofs[0], bytes.Replace(text, []byte(`"records":`), []byte(`"records":1`), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	var proof *ProofError
	if _, err := Finish(context.Background(), &b.o); !errors.As(err, &proof) || len(proof.Parts) != 1 {
		t.Errorf("a proof of other records: %v", err)
	}
	if err := os.WriteFile(proofs[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Finish(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), "remove this file") {
		t.Errorf("no proof: %v", err)
	}
	if err := os.Remove(proofs[0]); err != nil {
		t.Fatal(err)
	}
	if rep := b.finish(); rep.Proof.Parts != 1 {
		t.Errorf("%+v", rep.Proof)
	}
}

// TestProofsAwaited checks that a finish waits for the parts of the proof that it was told of, and changes nothing before.
func TestProofsAwaited(t *testing.T) {
	_, tree := wholeTree(t)
	b := newBench(t, fake.Dataset(2))
	b.crashable("never")
	b.o.Proofs = 3
	b.part(1, 1)
	waits := func(want MissingError) {
		t.Helper()
		var missing *MissingError
		_, err := Finish(context.Background(), &b.o)
		if !errors.As(err, &missing) || missing.Assemble != want.Assemble || missing.Proofs != want.Proofs ||
			missing.Parts != want.Parts || !slices.Equal(missing.Missing, want.Missing) {
			t.Errorf("%v, want %v", err, &want)
		}
		b.leaves("dst.kvferry", "src")
	}
	waits(MissingError{Target: b.o.Target.Path, Parts: 1, Assemble: true})
	b.o.Proofs = 0
	b.assemble()
	b.o.Proofs = 3
	b.prove(2, 3)
	waits(MissingError{Target: b.o.Target.Path, Parts: 3, Proofs: true, Missing: []int{1, 3}})
	b.prove(1, 3)
	b.prove(1, 2) // of another division
	waits(MissingError{Target: b.o.Target.Path, Parts: 3, Proofs: true, Missing: []int{3}})
	b.prove(3, 3)
	if rep := b.finish(); rep.Proof.Parts != 3 || b.tree() != tree {
		t.Errorf("%+v", rep.Proof)
	}
}

// TestProofRefuses checks what is said of a target that is not assembled, and of options without a proof.
func TestProofRefuses(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.crashable("never")
	var missing *MissingError
	if _, err := ProvePart(context.Background(), &b.o, pass.Part{K: 1, N: 2}); !errors.As(err, &missing) || missing.Parts != 0 {
		t.Errorf("no part has run: %v", err)
	}
	b.part(1, 2)
	if _, err := Assemble(context.Background(), &b.o); !errors.As(err, &missing) || len(missing.Missing) != 1 {
		t.Errorf("one part has run: %v", err)
	}
	b.part(2, 2)
	if _, err := ProvePart(context.Background(), &b.o, pass.Part{K: 1, N: 2}); !errors.As(err, &missing) || !missing.Assemble {
		t.Errorf("not assembled: %v", err)
	}
	b.assemble()
	b.assemble()
	o := b.o
	o.NoProve = true
	if _, err := ProvePart(context.Background(), &o, pass.Part{K: 1, N: 2}); err == nil || !strings.Contains(err.Error(), "--no-prove") {
		t.Errorf("without a proof: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ProvePart(ctx, &b.o, pass.Part{K: 1, N: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
