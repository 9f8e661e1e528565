package formattest

import (
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/store/rocks"
)

// OpenShared opens a database that the original engine wrote, which lies in the repository or beside it, and returns what the
// engine answered. Without the database the test is skipped.
func OpenShared(t testing.TB, f format.Format, name string) (format.Source, []byte) {
	t.Helper()
	var dir string
	var truth []byte
	if slices.Contains(fixtures.Names(), name) {
		dir, truth = fixtures.Unpack(t, name), fixtures.Truth(t, name)
	} else {
		dir, truth = fixtures.UnpackOutside(t, name), fixtures.OutsideTruth(t, name)
	}
	return Open(t, f, dir, &format.OpenOptions{Store: rocks.Open}), truth
}
