package nemo_test

import (
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// memory is a nemo dataset in memory.
type memory struct{ *formattest.Memory }

func newMemory(t testing.TB) *memory { return &memory{formattest.NewMemory(t, nemo.New())} }

// stores makes the five stores, empty.
func (m *memory) stores() *memory {
	m.Declare("kv", "hash", "list", "set", "zset")
	return m
}

func randomOptions() fixtures.Options {
	return fixtures.Options{DB: "0", Limits: nemo.New().Limits()}
}

// elementsOf returns the elements of the only record.
func elementsOf(t *testing.T, r *record.Walker) (all []string) {
	t.Helper()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	elems := make([]record.Element, 7)
	n, err := r.Read(elems)
	for ; err == nil; n, err = r.Read(elems) {
		for _, e := range elems[:n] {
			all = append(all, string(e.Value))
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("after the record: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}
