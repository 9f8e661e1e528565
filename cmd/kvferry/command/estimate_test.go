package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
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
	"kvferry/internal/sys/disk"
	"kvferry/nemo"
	"kvferry/store/rocks/build"
)

// mixed builds a nemo dataset like the benchmarks', with this number of elements.
func mixed(t *testing.T, elements int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mix")
	target, err := nemo.New().Create(context.Background(), dir, &format.CreateOptions{Create: build.Create, DBs: []string{"0"},
		Layout: format.LayoutFlat, Memory: 16 << 20, Now: fixtures.Clock})
	if err == nil {
		err = fixtures.Mix(1, elements).Build(context.Background(), target, 16<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// reported runs a conversion and returns its report.
func reported(t *testing.T, args ...string) *convert.Report {
	t.Helper()
	var rep convert.Report
	if err := json.Unmarshal([]byte(ok(t, append([]string{"convert", "--format", "json"}, args...)...)), &rep); err != nil {
		t.Fatal(err)
	}
	return &rep
}

// TestEstimate converts between formats and checks that estimates from a sample are within a quarter of the actual
// values.
func TestEstimate(t *testing.T) {
	src, dir := mixed(t, 160_000), t.TempDir()
	for _, name := range []string{"blackwidow", "kvrocks", "rdb", "pika4"} {
		dst := filepath.Join(dir, name)
		est := reported(t, "--estimate", "--estimate-size", "1MiB", src, name+":"+dst)
		e := est.Estimate
		if !est.Sampled || !est.DryRun || e.SampleBytes > e.SourceBytes/2 || e.Seconds <= 0 || len(e.Volumes) != 1 || !e.Fits {
			t.Errorf("%s: %+v", name, e)
		}
		some := reported(t, "--dry-run", "--sample", "100", src, name+":"+dst)
		if !some.Sampled || some.Estimate.SampleBytes > some.Estimate.SourceBytes*3/4 ||
			some.Estimate.TargetBytes < some.Estimate.SampleBytes {
			t.Errorf("%s, a share of the source: %+v", name, some.Estimate)
		}
		rep := reported(t, "--no-prove", src, name+":"+dst)
		if got, is := float64(est.Estimate.TargetBytes), float64(rep.Target.Bytes); math.Abs(got-is) > is/4 {
			t.Errorf("%s: estimated %.0f bytes, is %.0f", name, got, is)
		}
		src = dst
	}
	dry := reported(t, "--dry-run", src, "blackwidow:"+filepath.Join(dir, "last"))
	if dry.Sampled || dry.Records() != 65_280 || dry.Estimate.TargetBytes < 4<<20 || strings.Contains(entries(t, dir), "last") {
		t.Errorf("a whole dry run: %+v, %d records", dry.Estimate, dry.Records())
	}
}

// TestEstimateOnServer checks that an estimate for a server target is refused before the source is read, as a server
// is never written to for a sample.
func TestEstimateOnServer(t *testing.T) {
	src := golden(t, "bw-basic")
	for _, args := range [][]string{{"--estimate"}, {"--dry-run", "--sample", "100"}} {
		r := kvferry(t, append(append([]string{"convert"}, args...), src, "redis://127.0.0.1:1")...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "use --dry-run alone, which reads the whole source") {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
	est := reported(t, "--estimate", "--allow-loss", "score-range,empty-key,key-too-long", src,
		"nemo:"+filepath.Join(t.TempDir(), "dst"))
	if est.Sampled {
		t.Error("a source that was read as a whole is called a sample")
	}
}

// TestNoSpace checks that a conversion that does not fit is refused before it starts, unless --force-space is given.
func TestNoSpace(t *testing.T) {
	src, dir, temp := golden(t, "bw-basic"), t.TempDir(), t.TempDir()
	dst := "blackwidow:" + filepath.Join(dir, "dst")
	room := map[string]int64{dir: 1000, temp: 1 << 40}
	defer disk.FakeSpace(func(path string) (disk.Space, error) {
		n, ok := room[path]
		if !ok {
			return disk.Space{}, fs.ErrNotExist
		}
		return disk.Space{Free: n, Device: uint64(n)}, nil
	})()
	r := kvferry(t, "convert", src, dst)
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "not enough space: "+dir+" has 1000 B free, and about ") ||
		!strings.Contains(r.stderr, "--force-space") || entries(t, dir) != "" {
		t.Errorf("exit %d: %s; left %s", r.code, r.stderr, entries(t, dir))
	}
	out := ok(t, "convert", "--dry-run", "--temp-dir", temp, src, dst)
	if !strings.Contains(out, "for the target in "+dir+", 1000 B free: NOT ENOUGH") ||
		!strings.Contains(out, "for temporary files in "+temp+", 1.0 TiB free: enough") {
		t.Error(out)
	}
	ok(t, "convert", "--force-space", src, dst)

	delete(room, dir) // a disk with unknown free space
	ok(t, "convert", src, dst+"2")
}

// TestTimingsNameReplay checks that the time line of a converted append-only file includes the replay.
func TestTimingsNameReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log.aof")
	if err := os.WriteFile(log, []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--dry-run", "--no-prove=false"} {
		out := ok(t, "convert", flag, log, "nemo:"+filepath.Join(dir, "new"))
		if want := regexp.MustCompile(`(?m)^time: .* \(replay [0-9.µms]+, (read|convert) `); !want.MatchString(out) {
			t.Errorf("%s does not name the replay:\n%s", flag, out)
		}
	}
	if rep := reportOf(t, filepath.Join(dir, "new")); rep.Timings.Prepare <= 0 || rep.Timings.Preparation != "replay" {
		t.Errorf("timings %+v", rep.Timings)
	}
}

// TestEstimateOfLog estimates an append-only file whose records differ in size by type. A dry run must estimate the
// same target size from all records as from a sample, and name the types missing from the sample.
func TestEstimateOfLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, dst := filepath.Join(dir, "log.aof"), "kvrocks:"+filepath.Join(dir, "new")
	rnd := rand.New(rand.NewPCG(1, 2))
	var b []byte
	command := func(args ...string) {
		b = fmt.Appendf(b, "*%d\r\n", len(args))
		for _, a := range args {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
		}
	}
	value := make([]byte, 150)
	for i := range 60000 {
		for j := range value {
			value[j] = byte(rnd.Uint32())
		}
		command("SET", fmt.Sprintf("key:%06d", i), string(value))
	}
	command("HSET", "a", "f", "v")
	for i := range 3000 {
		args := []string{"SADD", fmt.Sprintf("s:%d", i)}
		for j := range 50 {
			args = append(args, fmt.Sprintf("m%d", j))
		}
		command(args...)
	}
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--temp-dir", dir, "--estimate-size", "256KiB", log, dst}
	full, part := reported(t, append(flags, "-n")...), reported(t, append(flags, "--estimate")...)
	text := ok(t, append([]string{"convert", "--estimate"}, flags...)...)
	if !slices.Equal(part.Unseen, []string{"hash"}) || full.Unseen != nil || !strings.Contains(text, "The sample has no hash, but the source may:") {
		t.Errorf("a sample without %v, %v:\n%s", part.Unseen, full.Unseen, text)
	}
	real := reported(t, "--temp-dir", dir, log, dst).Target.Bytes
	est, quick := full.Estimate, part.Estimate
	if est.SampleBytes*5 > est.SourceBytes || math.Abs(float64(est.TargetBytes)/float64(real)-1) > 0.25 {
		t.Errorf("the target is estimated at %d bytes from %d of %d, it has %d", est.TargetBytes, est.SampleBytes,
			est.SourceBytes, real)
	}
	if math.Abs(float64(quick.TargetBytes)/float64(est.TargetBytes)-1) > 0.01 {
		t.Errorf("the target has %d bytes if everything is read, %d if a sample is", est.TargetBytes, quick.TargetBytes)
	}
}

// TestSampleKnowsWhatIsLost checks that a sample counts as having seen a type that the target cannot hold, although
// no such record is converted.
func TestSampleKnowsWhatIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log.aof")
	b := []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
	for i := range 9000 {
		b = fmt.Appendf(b, "*5\r\n$4\r\nXADD\r\n$5\r\ns%04d\r\n$3\r\n1-1\r\n$1\r\nf\r\n$1\r\nv\r\n", i)
	}
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	rep := reported(t, "--estimate", "--estimate-size", "64KiB", "--allow-loss", "stream", "--temp-dir", dir, log,
		"nemo:"+filepath.Join(dir, "new"))
	if !rep.Sampled || slices.Contains(rep.Unseen, "stream") {
		t.Errorf("sampled %v, not seen %v, lost %+v", rep.Sampled, rep.Unseen, rep.Losses)
	}
}

// TestDryRunSorts checks that a dry run spills to disk when sorting does not fit in memory, like the conversion.
func TestDryRunSorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dump := "rdb:" + filepath.Join(dir, "dump.rdb")
	reported(t, "--no-prove", mixed(t, 400_000), dump)
	rep := reported(t, "-n", "--memory", "32MiB", "--temp-dir", dir, dump, "kvrocks:"+filepath.Join(dir, "new"))
	if rep.Estimate == nil {
		t.Errorf("%+v", rep)
	}
}
