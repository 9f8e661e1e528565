package formattest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/store/rocks"
)

// OpenShared opens a database written by the original engine, in the repository or next to it, and returns it with
// the engine's answers. It skips the test if the database is missing.
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

// ShowRow renders a row: kind, user key, then version, count and expiry if set, then the fields.
func ShowRow(r format.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %q", r.Kind, r.UserKey)
	if r.Meta {
		b.WriteString(" meta")
	}
	if r.Version >= 0 {
		fmt.Fprintf(&b, " v%d", r.Version)
	}
	if r.Count >= 0 {
		fmt.Fprintf(&b, " n%d", r.Count)
	}
	if r.ExpireMS != 0 {
		fmt.Fprintf(&b, " until %d", r.ExpireMS)
	}
	for _, f := range r.Fields {
		fmt.Fprintf(&b, "; %s %s=%s @%d+%d", f.Where, f.Name, ShowValue(f.Value), f.Off, f.Len)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "; error %v", strings.ReplaceAll(r.Err.Error(), "\n", " | "))
	}
	return b.String()
}

// ShowValue renders the value of a field.
func ShowValue(v any) string {
	switch x := v.(type) {
	case []byte:
		return fmt.Sprintf("%q", x)
	case time.Time:
		return x.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}
