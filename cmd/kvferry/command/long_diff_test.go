package command

import (
	"strings"
	"testing"

	"kvferry/record"
)

// TestLongDifferences: values that begin alike are told apart.
func TestLongDifferences(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	a := build(t, formatOf(t, "pika4"), smallRecord(record.String, "k", long+"a"), smallRecord(record.Hash, "h", "f="+long))
	b := build(t, formatOf(t, "pika4"), smallRecord(record.String, "k", long+"bcd"), smallRecord(record.Hash, "h", "f="+long+"y"))
	r := kvferry(t, "diff", a, b)
	shown := `"` + long[:64] + `"…`
	for _, want := range []string{
		`"k": value ` + shown + " in A, " + shown + " in B; they differ from byte 1000 on: 1001 bytes in A, 1003 in B\n",
		`"h": field "f" ` + shown + " in A, " + shown + " in B; they differ from byte 1000 on: 1000 bytes in A, 1001 in B\n",
	} {
		if r.code != ExitFindings || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d: %s%s\nwant %s", r.code, r.stdout, r.stderr, want)
		}
	}
}
