package nemo_test

import (
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/formattest"
	"kvferry/nemo"
)

// memory is a nemo dataset in memory.
type memory struct{ *formattest.Memory }

func newMemory(t testing.TB) *memory { return &memory{formattest.NewMemory(t, nemo.New())} }

// stores makes the five stores, which stay empty.
func (m *memory) stores() *memory {
	m.Declare("kv", "hash", "list", "set", "zset")
	return m
}

func randomOptions() fixtures.Options {
	return fixtures.Options{DB: "0", Limits: nemo.New().Limits()}
}
