package command

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
)

// TestCompatibilityPage checks that the committed page matches the code. make docs regenerates it.
func TestCompatibilityPage(t *testing.T) {
	want := ok(t, "formats", "--format", "markdown")
	got, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/compatibility.md is not what the code says: run make docs")
	}
	for _, text := range []string{
		"| blackwidow | `key-too-long`, `empty-key`, `score-range`, `too-many-elements` | nothing | nothing | `same-name`, `inner-nul` | `same-name`, `int-span` |",
		"| nemo | nothing | nothing | nothing | `same-name`, `inner-nul` | `same-name`, `int-span` |",
		"| ardb | `stream`, `key-too-long`,",
		"| nemo | read and written | – | – |",
	} {
		if !strings.Contains(want, text) {
			t.Errorf("no %q on the page", text)
		}
	}
}

// TestLossesAreDescribed checks that the page describes every kind of loss.
func TestLossesAreDescribed(t *testing.T) {
	page, kinds := ok(t, "formats", "--format", "markdown"), 0
	constant := regexp.MustCompile(`(?m)^\s+Loss\w+\s+= "([a-z0-9-]+)"`)
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "losses.go" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range constant.FindAllSubmatch(data, -1) {
			kinds++
			if !strings.Contains(page, "\n| `"+string(m[1])+"` | ") {
				t.Errorf("%s: %s is not described", path, m[1])
			}
		}
		return err
	})
	if err != nil || kinds < 12 {
		t.Errorf("%d kinds found, %v", kinds, err)
	}
}

// possible checks that the page lists a loss for a pair of formats.
func possible(t testing.TB, from, to place, kind string) {
	t.Helper()
	f, l := from.limits(t), to.limits(t)
	for _, info := range format.PossibleLosses(&f, &l, dataset.Beyond(&f, &l)) {
		if info.Kind == kind {
			if info.Note != slices.Contains(notes, kind) {
				t.Errorf("%s: note %v", kind, info.Note)
			}
			return
		}
	}
	t.Errorf("%s from %s to %s is not on the page", kind, from, to)
}

// TestPairsListLosses checks that the page lists, for every dialect of a target, the losses of goldens with module
// values, functions, groups and expiries of all kinds.
func TestPairsListLosses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	formats := map[string]string{"kvrocks-modules": "kvrocks", "rdb-module": "rdb", "rdb-v90-basic": "rdb"}
	for _, archive := range fixtures.Archives(false) {
		from := formats[archive.Name]
		if from == "" {
			continue
		}
		src, err := archive.Extract(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range dialects(testApp().Formats) {
			if to.Limits().Place == format.OnServer || to.Limits().NoTarget != "" {
				continue
			}
			name := format.LocationName(to)
			r := kvferry(t, "convert", "-n", "--estimate", "--on-conflict", "rename", "--temp-dir", dir, "--format", "json", src,
				name+":"+filepath.Join(dir, "new"))
			if strings.Contains(r.stderr, "SSDB has a single database, ") && r.code == cli.ExitFailed {
				// of several databases the user picks one
				continue
			}
			var rep convert.Report
			if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != cli.ExitLossy && r.code != cli.ExitOK {
				t.Fatalf("%s to %s: exit %d, %v\n%s", src, name, r.code, err, r.stderr)
			}
			for _, l := range rep.Losses {
				f, l2 := formatOf(t, from).Limits(), to.Limits()
				if !slices.Contains(append(possibleKinds(&f, &l2), anywhere...), l.Kind) {
					t.Errorf("%s from %s to %s is not on the page", l.Kind, from, name)
				}
			}
		}
	}
}

// TestPairs checks losses that depend on the version of a server, or that only servers newer than the target cause.
func TestPairs(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"rdb", "rdb", "stream-groups field-expiry member-expiry module group-progress"},
		{"rdb", "redis", "stream stream-groups field-expiry member-expiry module group-progress"},
		{"kvrocks", "redis", "stream field-expiry module group-progress"},
		{"kvrocks", "rdb", "field-expiry module group-progress"},
		{"kvrocks", "kvrocks", "field-expiry module cluster-mode stream-id"},
		{"kvrocks", "kvrocks2.17", "cluster-mode stream-id"},
		{"kvrocks", "kvrocks2.9", "stream-groups field-expiry module cluster-mode stream-id"},
		{"kvrocks", "kvrocks2.3", "stream-groups field-expiry module too-many-elements expiry-ms cluster-mode expiry-2106 stream-id"},
		{"nemo", "kvrocks2.3", "same-name"},
	} {
		from, to := formatOf(t, c.from).Limits(), serverFormat(t, c.to).Limits()
		if got := strings.Join(possibleKinds(&from, &to), " "); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func serverFormat(t *testing.T, name string) format.Format {
	t.Helper()
	all := dialects(testApp().Formats)
	i := slices.Index(names(all), name)
	if i < 0 {
		t.Fatalf("%s has no column", name)
	}
	return all[i]
}
