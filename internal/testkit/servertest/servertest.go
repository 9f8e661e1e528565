// Package servertest makes servers for tests of commands and reads their content.
package servertest

import (
	"strings"
	"testing"
	"time"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/state"
)

// Now is the time of the servers.
var Now = time.UnixMilli(1_700_000_000_000)

// New returns an empty server that is closed when the test ends.
func New(t *testing.T) *state.Server {
	t.Helper()
	return Sized(t, 1<<20)
}

// Sized is New with this memory limit for the state.
func Sized(t *testing.T, memory int64) *state.Server {
	t.Helper()
	db, err := state.New(state.Options{TempDir: t.TempDir(), Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &state.Server{DB: db, Now: Now.UnixMilli()}
}

// Made returns a server after do has run the commands, one per line.
func Made(t *testing.T, do func(*state.Server, [][]byte) error, lines string) *state.Server {
	t.Helper()
	s := New(t)
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		if err := do(s, Words(line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return s
}

// Words splits a line into words. A pair of single quotes is an empty word.
func Words(line string) [][]byte {
	var out [][]byte
	for _, w := range strings.Fields(line) {
		if w == "''" {
			w = ""
		}
		out = append(out, []byte(w))
	}
	return out
}

// Contents seals the state and reads all keys, in the form of redistest.Form.
func Contents(t *testing.T, s *state.Server) map[string]string {
	t.Helper()
	if err := s.DB.Seal(); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, db := range s.DB.Databases() {
		r, err := s.DB.Records(db, record.AllTypes, nil, nil, time.Now(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, out, r)
	}
	return out
}
