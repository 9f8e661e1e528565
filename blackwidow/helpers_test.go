package blackwidow_test

import (
	"testing"

	"kvferry/blackwidow"
	"kvferry/internal/testkit/formattest"
)

// memory is a blackwidow dataset in memory.
type memory struct{ *formattest.Memory }

func newMemory(t testing.TB) *memory { return &memory{formattest.NewMemory(t, blackwidow.New())} }

// stores makes the five stores, empty.
func (m *memory) stores() *memory {
	m.Declare("strings", "hashes", "lists", "sets", "zsets")
	return m
}
