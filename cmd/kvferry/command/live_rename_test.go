package command

import (
	"path/filepath"
	"testing"

	"kvferry/internal/testkit/redistest"
)

// TestRenamedIntoServer checks that records get the same new names in a server as in a file, although the source is
// read twice for a server.
func TestRenamedIntoServer(t *testing.T) {
	src, server := golden(t, "nemo-basic"), "redis://"+redistest.Start(t).Addr
	t.Chdir(t.TempDir()) // for the report
	file := "rdb:" + filepath.Join(t.TempDir(), "whole.rdb")
	for _, dst := range []string{file, server} {
		ok(t, "convert", "--on-conflict", "rename", src, dst)
	}
	ok(t, "diff", file, server)
}
