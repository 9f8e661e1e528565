package floyd_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// wantKinds are the kinds of findings in the databases that have any. The truth of pika4-edge lacks keys that
// the engine itself cannot find, because the bytes after their last NUL are not on disk.
var wantKinds = map[string][]string{
	"pika4-edge": {"colliding-keys", "count-mismatch", "orphan-rows", floyd.FindTruncatedKey},
}

// exceptions are records on disk that are not in the truth, because they contain rows of an earlier
// incarnation: fields of a hash that was overwritten by SET, deleted and made again within one millisecond;
// and entries of a stream that was overwritten by SET and deleted, which came back when it was made again,
// without being counted in its meta row.
var exceptions = []string{`"type":"stream","key":"Y29udjY="`, `"type":"hash","key":"Y29udjc="`}

// emptyStream ends the line of an emptied stream: it still has a last id, which the truth does not show.
var emptyStream = []byte(`"value":[]}`)

// without removes the exceptions, emptied streams and the records with truncated keys.
func without(lines []byte, findings []record.Finding) (out []byte) {
	for _, line := range bytes.SplitAfter(lines, []byte("\n")) {
		if bytes.Contains(line, []byte(`"type":"stream"`)) && bytes.HasSuffix(bytes.TrimSpace(line), emptyStream) {
			continue
		}
		if slices.ContainsFunc(exceptions, func(s string) bool { return bytes.Contains(line, []byte(s)) }) {
			continue
		}
		if !slices.ContainsFunc(findings, func(f record.Finding) bool {
			return f.Kind == floyd.FindTruncatedKey &&
				bytes.Contains(line, fmt.Appendf(nil, `"type":%q,"key":%q`, f.Type, base64.StdEncoding.EncodeToString(f.Key)))
		}) {
			out = append(out, line...)
		}
	}
	return out
}

func TestGoldens(t *testing.T) {
	for _, name := range []string{"pika4-basic", "pika4-edge", "pika4-twodbs", "pika4-lz4", "pika4-zstd", "pika4-partidx",
		"pika400-basic", "pika4-blob"} {
		t.Run(name, func(t *testing.T) {
			src, truth := formattest.OpenShared(t, floyd.New(), name)
			var l record.Ledger
			var f formattest.Findings
			var got bytes.Buffer
			for _, db := range src.Databases() {
				got.Write(
					formattest.Lines(t, formattest.Records(t, src, db, &format.Env{Ledger: &l, Report: f.Report, Deep: true})))
			}
			formattest.CompareLines(t, without(got.Bytes(), f.All), truth)
			formattest.CheckLedger(t, &l)
			if kinds := slices.Compact(f.Kinds()); !slices.Equal(kinds, wantKinds[name]) {
				t.Errorf("findings %q, want %q", kinds, wantKinds[name])
			}
			for _, x := range f.All {
				t.Logf("%+v", x)
			}
			for _, k := range src.Keyspaces() {
				t.Logf("%s: %s", k.Name, formattest.Classes(&l, k.Name))
			}
		})
	}
}
