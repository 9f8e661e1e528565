package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/fixtures"
	"kvferry/nemo"
	"kvferry/record"
)

// damageTables flips bytes in the first half of a dataset's tables, where the data blocks are, and returns the number
// of damaged tables. It skips small tables, whose first half may contain other blocks.
func damageTables(t *testing.T, dir string, r *rand.Rand) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".sst" && ext != ".ldb" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) < 8<<10 || n > 0 && r.Intn(2) == 0 {
			return err
		}
		n++
		for range 1 + r.Intn(3) {
			b[r.Intn(len(b)/2)] ^= byte(1 + r.Intn(255))
		}
		return os.WriteFile(path, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// dumped returns the elements of the records in a dump, by database, type and key.
func dumped(t *testing.T, text string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var rec struct {
			DB, Type string
			Key      json.RawMessage
			Value    json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		name := fmt.Sprintf("%s %s %s", rec.DB, rec.Type, rec.Key)
		var list []json.RawMessage
		if json.Unmarshal(rec.Value, &list) != nil {
			list = []json.RawMessage{rec.Value}
		}
		out[name] = []string{}
		for _, e := range list {
			out[name] = append(out[name], string(e))
		}
	}
	return out
}

// wantPart checks that a dump contains no elements beyond another dump, and returns the number of missing elements.
func wantPart(t *testing.T, part, whole map[string][]string) (lost int) {
	t.Helper()
	for name, elems := range part {
		have := map[string]bool{}
		for _, e := range whole[name] {
			have[e] = true
		}
		for _, e := range elems {
			if !have[e] {
				t.Fatalf("%s has %s, which was not there", name, e)
			}
		}
	}
	for name, elems := range whole {
		lost += len(elems) - len(part[name])
	}
	return lost
}

// TestSalvage damages blocks of datasets with one level, so that no old values can reappear. verify must continue and
// report each block once, dump must show the rest, and convert must refuse it or, if allowed, copy exactly the rest.
func TestSalvage(t *testing.T) {
	t.Parallel()
	for name, dst := range map[string]string{"nemo-basic": "nemo", "bw-basic": "blackwidow", "bw-edge": "blackwidow",
		"ardb-rocksdb-basic": "ardb+rocksdb", "ardb-leveldb-basic": "ardb+leveldb"} {
		whole := filepath.Join(fastDir(t), "whole")
		ok(t, "convert", "--expired", "keep", "--sample", "2", golden(t, name), dst+":"+whole) // half is enough
		truth := dumped(t, ok(t, "dump", "--expired", "keep", dst+":"+whole))
		for seed := range int64(2) {
			src := filepath.Join(fastDir(t), "damaged")
			if err := os.CopyFS(src, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if damageTables(t, src, rand.New(rand.NewSource(seed))) == 0 {
				t.Fatalf("%s: no table to damage", name)
			}
			unchanged(t, src)
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { testSalvage(t, dst, src, truth) })
		}
	}
}

func testSalvage(t *testing.T, format, path string, truth map[string][]string) {
	src := format + ":" + path
	blocks := verifySalvage(t, src)
	if r := kvferry(t, "dump", "--expired", "keep", src); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "--salvage") {
		t.Errorf("dump: exit %d: %s", r.code, r.stderr)
	}
	left := kvferry(t, "dump", "--expired", "keep", "--salvage", src)
	if left.code != cli.ExitFindings || skippedLines(left.stderr) != len(blocks) {
		t.Errorf("dump --salvage: exit %d, want %d blocks: %s", left.code, len(blocks), left.stderr)
	}
	got := dumped(t, left.stdout)
	if lost := wantPart(t, got, truth); lost == 0 {
		t.Error("nothing is lost with the blocks")
	}
	if one := kvferry(t, "dump", "--expired", "keep", "--salvage", "--workers", "1", src); one.stdout != left.stdout {
		t.Error("the number of workers changes what is left")
	}
	if r := kvferry(t, "inspect", "--salvage", src); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "Rows") {
		t.Errorf("inspect --salvage: exit %d: %s", r.code, r.stderr)
	}
	dst := filepath.Join(fastDir(t), "new")
	args := []string{"convert", "--expired", "keep", src, format + ":" + dst}
	if r := kvferry(t, args...); r.code != cli.ExitLossy || !strings.Contains(r.stderr, "--allow-loss damaged") {
		t.Errorf("convert: exit %d: %s", r.code, r.stderr)
	}
	ok(t, append(args, "--allow-loss", "damaged")...)
	rep := reportOf(t, dst)
	if n, samples := skippedIn(rep); !rep.Proof.Done || n != int64(len(blocks)) ||
		slices.ContainsFunc(samples, func(s string) bool { return !slices.Contains(blocks, s) }) {
		t.Errorf("proved: %t, %d blocks %q, want %q", rep.Proof.Done, n, samples, blocks)
	}
	for _, a := range rep.Ledger {
		if a.Check != "ok" {
			t.Errorf("ledger of %s: %s", a.Keyspace, a.Check)
		}
	}
	if text := ok(t, "dump", "--expired", "keep", format+":"+dst); !reflect.DeepEqual(dumped(t, text), got) {
		t.Errorf("the target has other records: %d elements less, %d more", wantPart(t, dumped(t, text), got),
			wantPart(t, got, dumped(t, text)))
	}
	ok(t, "verify", format+":"+dst)
}

// skipKinds are the kinds of findings about skipped parts of tables.
var skipKinds = []string{record.FindDamagedBlock, record.FindMissingFile, record.FindFileSize}

// skippedLines counts the lines about skipped parts.
func skippedLines(text string) (n int) {
	for _, kind := range skipKinds {
		n += strings.Count(text, "error "+kind+": ")
	}
	return n
}

// verifySalvage verifies a damaged dataset, checks that each block is reported once and that all readable rows are
// read, and returns the details of the blocks.
func verifySalvage(t *testing.T, src string) (blocks []string) {
	t.Helper()
	r := kvferry(t, "verify", "--format", "json", "--max-findings", "1000000", src)
	var rep struct {
		Skipped  int `json:"skipped"`
		Unread   []string
		Findings []struct {
			Kind, Detail string
			Place        record.Place
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil || r.code != cli.ExitFindings {
		t.Fatalf("verify: exit %d, %v: %s", r.code, err, r.stderr)
	}
	seen := map[record.Place]bool{}
	for _, f := range rep.Findings {
		if !slices.Contains(skipKinds, f.Kind) {
			continue
		}
		if seen[f.Place] {
			t.Errorf("twice: %+v", f)
		}
		seen[f.Place] = true
		at := f.Place.File
		if f.Place.HasOffset() {
			at += fmt.Sprintf(", offset %d", f.Place.Off)
		}
		blocks = append(blocks, fmt.Sprintf("%s [%s]", f.Detail, at))
	}
	if len(blocks) == 0 || rep.Skipped != len(blocks) || len(rep.Unread) > 0 {
		t.Errorf("%d blocks, %d of them passed over, unread %q", len(blocks), rep.Skipped, rep.Unread)
	}
	slices.Sort(blocks)
	return blocks
}

// skippedIn returns the number of blocks counted in a report, and their samples.
func skippedIn(rep *convert.Report) (n int64, samples []string) {
	for _, f := range rep.Findings {
		if !slices.Contains(skipKinds, f.Kind) {
			continue
		}
		n += f.Count
		for _, s := range f.Samples {
			samples = append(samples, s.Detail)
		}
	}
	return n, samples
}

// TestSalvageResume checks that a conversion that failed after damaged blocks and tables resumes, with the same
// target and report as an uninterrupted one.
func TestSalvageResume(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"blocks": func(t *testing.T, dir string) {
			for _, name := range []string{"hash/000015.sst", "set/000015.sst", "zset/000017.sst"} {
				edit(name, flip(1000))(t, dir)
			}
		},
		"tables": func(t *testing.T, dir string) {
			removeOne("hash/000017.sst")(t, dir)
			edit("set/000015.sst", cutHalf)(t, dir)
			edit("zset/000017.sst", flipNamed("rocksdb.properties"))(t, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := filepath.Join(t.TempDir(), "damaged")
			if err := os.CopyFS(src, os.DirFS(golden(t, "nemo-basic"))); err != nil {
				t.Fatal(err)
			}
			spoil(t, src)
			unchanged(t, src)
			testSalvageResume(t, src)
		})
	}
}

func testSalvageResume(t *testing.T, src string) {
	dst := filepath.Join(t.TempDir(), "whole")
	args := []string{"convert", "--allow-loss", "damaged", "--workers", "1", "nemo:" + src, "blackwidow:" + dst}
	ok(t, args...)
	want, wantReport := treeBytes(t, dst), reportOf(t, dst)
	dst = filepath.Join(t.TempDir(), "whole")
	args[len(args)-1] = "blackwidow:" + dst
	args = append(args, "--resume")
	app := testApp()
	for i, f := range app.Formats {
		if f.Name() == "nemo" {
			app.Formats[i] = failing{f, func(_ string, t record.TypeSet) bool { return t.Has(record.String) }}
		}
	}
	var stderr bytes.Buffer
	code := app.Run(context.Background(), args, &stderr, &stderr)
	if code != cli.ExitFailed || !strings.Contains(stderr.String(), errPlanned.Error()) {
		t.Fatalf("exit %d, %s", code, &stderr)
	}
	journal, err := os.ReadFile(filepath.Join(dst+".kvferry", "journal"))
	if err != nil || !bytes.Contains(journal, []byte(`"stores":[{`)) {
		t.Fatalf("the journal names no block: %v\n%s", err, journal)
	}
	ok(t, args...)
	rep := reportOf(t, dst)
	if n, samples := skippedIn(rep); !rep.Timings.Resumed || !rep.Proof.Done || n != 3 {
		t.Errorf("resumed %t, proved %t, %d blocks %q", rep.Timings.Resumed, rep.Proof.Done, n, samples)
	}
	if !reflect.DeepEqual(rep.Findings, wantReport.Findings) || !reflect.DeepEqual(rep.Losses, wantReport.Losses) ||
		!reflect.DeepEqual(rep.Ledger, wantReport.Ledger) {
		t.Errorf("the resumed run reports\n%+v\n%+v\nwant\n%+v\n%+v", rep.Findings, rep.Losses, wantReport.Findings,
			wantReport.Losses)
	}
	if treeBytes(t, dst) != want {
		t.Error("the resumed run wrote something else")
	}
}

// TestSalvageLMDB damages pages of an LMDB file that Ardb wrote.
func TestSalvageLMDB(t *testing.T) {
	t.Parallel()
	whole := fixtures.Unpack(t, "ardb-lmdb-basic")
	truth := dumped(t, ok(t, "dump", "--expired", "keep", whole))
	data, err := os.ReadFile(filepath.Join(whole, "lmdb", "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	r := rand.New(rand.NewSource(1))
	damaged := 0
	for range 4 {
		var leaves []int
		for n := 2; n < len(data)/page; n++ {
			p := data[n*page : (n+1)*page]
			if binary.LittleEndian.Uint64(p) == uint64(n) && binary.LittleEndian.Uint16(p[10:]) == 2 {
				leaves = append(leaves, n)
			}
		}
		broken := bytes.Clone(data)
		for _, i := range r.Perm(len(leaves))[:3] {
			clear(broken[leaves[i]*page : (leaves[i]+1)*page])
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "lmdb", "data.mdb"), broken, 0o644); err != nil {
			t.Fatal(err)
		}
		unchanged(t, dir)
		if left := kvferry(t, "dump", "--expired", "keep", "--salvage", dir); left.code != cli.ExitOK {
			// otherwise the pages are unreachable
			damaged++
			testSalvageLMDB(t, dir, left, truth)
		}
	}
	if damaged == 0 {
		t.Error("no page in use was damaged")
	}
}

func testSalvageLMDB(t *testing.T, dir string, left result, truth map[string][]string) {
	t.Helper()
	if pages := strings.Count(left.stderr, "error damaged-page"); left.code != cli.ExitFindings || pages == 0 || pages > 3 {
		t.Fatalf("dump --salvage: exit %d, %d pages: %s", left.code, pages, left.stderr)
	} else if want := fmt.Sprintf("\nkvferry: unreadable tables, blocks or pages: %d; their rows are missing\n",
		pages); !strings.Contains(left.stderr, want) {
		t.Errorf("dump --salvage does not say %q: %s", want, left.stderr)
	}
	got := dumped(t, left.stdout)
	wantPart(t, got, truth)
	if r := kvferry(t, "verify", dir); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "\nlost: the rows in ") ||
		strings.Contains(r.stdout, "not all records") {
		t.Errorf("verify: exit %d\n%s", r.code, r.stdout)
	}
	dst := filepath.Join(t.TempDir(), "new")
	args := []string{"convert", "--expired", "keep", dir, "ardb+leveldb:" + dst}
	if r := kvferry(t, args...); r.code != cli.ExitLossy {
		t.Errorf("convert: exit %d: %s", r.code, r.stderr)
	}
	ok(t, append(args, "--allow-loss", "damaged")...)
	text := ok(t, "dump", "--expired", "keep", "ardb+leveldb:"+dst)
	if !reportOf(t, dst).Proof.Done || !reflect.DeepEqual(dumped(t, text), got) {
		t.Error("the target has other records")
	}
}

// TestSalvageElsewhere checks that the RocksDB library skips no damage, and that salvage does not change a sound
// dataset.
func TestSalvageElsewhere(t *testing.T) {
	nemo := golden(t, "nemo-basic")
	if testApp().Fallback != nil {
		if r := kvferry(t, "dump", "--salvage", "--store", "rocksdb", nemo); r.code != cli.ExitUsage {
			t.Errorf("--store rocksdb: exit %d: %s", r.code, r.stderr)
		}
	}
	if ok(t, "dump", "--salvage", nemo) != ok(t, "dump", nemo) {
		t.Error("--salvage changes the dump of a sound dataset")
	}
	ok(t, "inspect", "--salvage", nemo)
}

// TestSalvageList damages a block in the middle of a list's table. Nodes of a short list are neighbours there. Nodes
// of a long list are spread over the list, as seqs are sorted by their lowest byte: the longer the list, the fewer
// are neighbours. All other nodes must be copied.
func TestSalvageList(t *testing.T) {
	for _, n := range []int{250, 600, 1500, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { testSalvageList(t, n) })
	}
}

func testSalvageList(t *testing.T, n int) {
	r := rand.New(rand.NewSource(int64(n)))
	list := given{typ: record.List, key: "queue"}
	for i := range n {
		value := make([]byte, 100)
		r.Read(value)
		list.elems = append(list.elems, record.Element{Value: fmt.Appendf(nil, "%d %x", i, value)})
	}
	dir := filepath.Join(t.TempDir(), "damaged")
	if err := os.CopyFS(dir, os.DirFS(datasetOf(t, nemo.New(), list))); err != nil {
		t.Fatal(err)
	}
	whole := dumped(t, ok(t, "dump", "nemo:"+dir))[`0 list "queue"`]
	edit("list/000004.sst", func(b []byte) []byte { b[len(b)/2] ^= 0xFF; return b })(t, dir)
	unchanged(t, dir)
	dst := filepath.Join(t.TempDir(), "new")
	ok(t, "convert", "--allow-loss", "damaged", "nemo:"+dir, "blackwidow:"+dst)
	got := dumped(t, ok(t, "dump", "blackwidow:"+dst))[`0 list "queue"`]
	lost, holes := missing(whole, got)
	if lost+len(got) != n || lost < 5 || (n == 250) != (holes == 1) || (n == 5000) != (holes == lost) {
		t.Fatalf("%d of %d elements, of which %d are missing in %d places", len(got), n, lost, holes)
	}
	rep := reportOf(t, dst)
	details := map[string]string{}
	for _, f := range rep.Findings {
		if len(f.Samples) > 0 {
			details[f.Kind] = f.Samples[0].Detail
		}
	}
	want := fmt.Sprintf("nodes read: %s from the left end, 0 from the right end; gaps skipped: %d [", record.Number(len(got)),
		holes)
	if !strings.Contains(details["list-broken-link"], want) {
		t.Errorf("the finding says %q, want %q", details["list-broken-link"], want)
	}
	count := fmt.Sprintf("count is %s, rows found: %s [", record.Number(n), record.Number(len(got)))
	if !strings.HasPrefix(details["count-mismatch"], count) || len(details) != 3 {
		t.Errorf("the findings are %q, want %q, damaged-block and list-broken-link", details, count)
	}
	for _, a := range rep.Ledger {
		if a.Check != "ok" {
			t.Errorf("ledger of %s: %s", a.Keyspace, a.Check)
		}
		if a.Keyspace == "list" && (a.Classes["copied"] != int64(1+len(got)) || a.Classes["orphan"] != 0) {
			t.Errorf("ledger: %v, want %d copied", a.Classes, 1+len(got))
		}
	}
	if !rep.Proof.Done {
		t.Error("there is no proof")
	}
	if v := kvferry(t, "verify", "nemo:"+dir); v.code != cli.ExitFindings || !strings.Contains(v.stdout, want) {
		t.Errorf("verify: exit %d, %s", v.code, v.stdout)
	}
}

// missing returns the number of elements of all that some lacks, and the number of gaps. The order must be the same.
// It returns 0 if some is not a part of all.
func missing(all, some []string) (n, places int) {
	in := false // inside a gap
	for _, x := range all {
		if len(some) > 0 && some[0] == x {
			some, in = some[1:], false
			continue
		}
		n++
		if !in {
			in, places = true, places+1
		}
	}
	if len(some) > 0 {
		return 0, 0
	}
	return n, places
}
