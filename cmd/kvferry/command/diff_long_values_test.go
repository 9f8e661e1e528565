package command

import (
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/record"
)

// TestLongDifferences checks that values with a common prefix are distinguishable in the output.
func TestLongDifferences(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	a := buildSmall(t, formatOf(t, "pika4"), smallRecord(record.String, "k", long+"a"), smallRecord(record.Hash, "h", "f="+long))
	b := buildSmall(t, formatOf(t, "pika4"), smallRecord(record.String, "k", long+"bcd"),
		smallRecord(record.Hash, "h", "f="+long+"y"))
	r := kvferry(t, "diff", a, b)
	shown := `"` + long[:64] + `"…`
	for _, want := range []string{
		`"k": value ` + shown + " in A, " + shown + " in B; they differ from byte 1000 on: 1,001 bytes in A, 1,003 in B\n",
		`"h": field "f" ` + shown + " in A, " + shown + " in B; they differ from byte 1000 on: 1,000 bytes in A, 1,001 in B\n",
	} {
		if r.code != cli.ExitFindings || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d: %s%s\nwant %s", r.code, r.stdout, r.stderr, want)
		}
	}
}

// TestLongNamesDiffering checks that keys, fields and members with a common prefix are distinguishable from those of
// the previous line.
func TestLongNamesDiffering(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	a := buildSmall(t, formatOf(t, "pika4"), smallRecord(record.Hash, "h", long+"=1", long+"f=1"),
		smallRecord(record.Set, "i", long+"h"), smallRecord(record.Set, "s", "short", long+"a", long+"b"),
		smallRecord(record.String, long+"1", "=v"), smallRecord(record.String, long+"2", "=v"))
	b := buildSmall(t, formatOf(t, "pika4"), smallRecord(record.Hash, "h", long+"=2", long+"f=2"),
		smallRecord(record.Set, "s", "other", long+"c"))
	r := kvferry(t, "diff", a, b)
	shown := `"` + long[:64] + `"…`
	for _, want := range []string{
		`"h": field ` + shown + ` "1" in A, "2" in B` + "\n",
		`"h": field ` + shown + ` "1" in A, "2" in B; this name differs from the previous name at byte 1000: 1,001 bytes here, 1,000 there` + "\n",
		`"s": member ` + shown + " only in A; this name differs from the previous name at byte 1000: 1,001 bytes here, 1,001 there\n",
		`"s": member ` + shown + " only in B; this name differs from the previous name at byte 1000: 1,001 bytes here, 1,001 there\n",
		`string ` + shown + "; this key differs from the previous key at byte 1000: 1,001 bytes here, 1,001 there\n",
	} {
		if r.code != cli.ExitFindings || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d: %s%s\nwant %s", r.code, r.stdout, r.stderr, want)
		}
	}
	if n := strings.Count(r.stdout, "differs from the previous"); n != 4 {
		t.Errorf("%d lines say so, want 4: %s", n, r.stdout)
	}
}
