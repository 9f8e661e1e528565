package redis

import (
	"testing"

	"kvferry/redis/rdb"
)

// TestShape: the version to write is the file's own, or the newest older one, and never older than the default.
func TestShape(t *testing.T) {
	for h, want := range map[rdb.Header]string{
		{Version: 3}: "", {Version: 9}: "", {Version: 10}: "10", {Version: 12}: "12", {Version: 15}: "12",
		{Version: 80, Valkey: true}: "valkey80", {Version: 81, Valkey: true}: "valkey80",
	} {
		if got := (&source{index: &index{header: h}}).Shape().RDBVersion; got != want {
			t.Errorf("%v: %s, want %s", h, got, want)
		}
	}
}
