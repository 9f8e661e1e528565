package convert

import (
	"errors"
	"testing"
)

// TestPublishedErrors: what is said when a target is complete and something failed behind it.
func TestPublishedErrors(t *testing.T) {
	boom := errors.New("boom")
	for e, want := range map[*PublishedError]string{
		{Target: "/t", Dir: "/t.kvferry", Synced: true, Err: boom}: "/t is complete, but /t.kvferry, which is no longer needed, could not be removed: boom; remove it",
		{Target: "/t", Dir: "/t.kvferry", Err: boom}: "/t is complete and its report belongs in /t.kvferry-report.json, but the disk has not confirmed their names: boom; " +
			"sync the disk and look for them before you rely on them",
	} {
		if e.Error() != want || !errors.Is(e, boom) {
			t.Errorf("%s, want %s", e, want)
		}
	}
}
