package command

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/internal/testkit/redistest"
)

// parquetOf dumps a source as Parquet.
func parquetOf(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	r := kvferry(t, append([]string{"dump", "--format", "parquet", "-o", dir}, args...)...)
	if r.code != cli.ExitOK && r.code != cli.ExitFindings {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	return dir
}

// fingerprintParts returns the digests in a fingerprint.
func fingerprintParts(t *testing.T, args ...string) string {
	t.Helper()
	r := kvferry(t, append([]string{"fingerprint"}, args...)...)
	var file struct {
		Databases, Parts []json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.stdout), &file); err != nil || len(file.Parts) == 0 {
		t.Fatalf("%v, exit %d: %s", err, r.code, r.stderr)
	}
	return fmt.Sprintf("%s", file.Parts)
}

// TestParquetGoldens checks that each golden database, and an RDB file with groups of streams and modules, has the same
// fingerprint as its dump, which verify finds sound.
func TestParquetGoldens(t *testing.T) {
	t.Parallel()
	var sources []string
	for _, name := range fixtures.Names() {
		if name != "rocks-modern" && !strings.HasSuffix(name, "-zlib") {
			sources = append(sources, golden(t, name))
		}
	}
	for _, name := range []string{"rdb-v90-basic", "rdb-module"} {
		sources = append(sources, filepath.Join("..", "..", "..", "fixtures", "golden", name+".rdb.gz"))
	}
	for _, src := range some(sources, 4) {
		dir := "parquet:" + parquetOf(t, "--expired", "keep", src)
		got, want := fingerprintParts(t, "--expired", "keep", dir), fingerprintParts(t, "--expired", "keep", src)
		if got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
		if r := kvferry(t, "verify", "--fail-on", "error", dir); r.code != cli.ExitOK {
			t.Errorf("%s: verify: exit %d: %s%s", src, r.code, r.stdout, r.stderr)
		}
	}
}

// TestParquetConverts converts a dump into another format.
func TestParquetConverts(t *testing.T) {
	t.Parallel()
	src := golden(t, "bw-basic")
	dir := parquetOf(t, "--workers", "3", src)
	to := filepath.Join(t.TempDir(), "new")
	ok(t, "convert", "parquet:"+dir, "blackwidow:"+to)
	ok(t, "diff", src, to)
	ok(t, "diff", "parquet:"+dir, to)
	if again := parquetOf(t, "--workers", "1", src); treeOf(t, again) != treeOf(t, dir) {
		t.Error("files depend on --workers")
	}
}

// TestParquetOutput checks that a directory that exists is refused before the source is read, that a name may end in a
// slash, and that a dump with replaced bytes is no source.
func TestParquetOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := filepath.Join("..", "..", "..", "fixtures", "golden", "rdb-v90-basic.rdb.gz")
	r := kvferry(t, "dump", "--format", "parquet", "-o", dir, src)
	if want := "-o " + dir + " exists; --format parquet needs a new directory"; r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, want) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "dump", "--format", "jsonl", "-o", "s3://bucket/x", src); r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, "--output s3://bucket/x: kvferry writes this file to the local disk only") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	for want, args := range map[string][]string{"-o https://host/x: a web server is not written": {"-o", "https://host/x"},
		"--rate goes with --format parquet -o s3://": {"-o", filepath.Join(dir, "new"), "--rate", "1MiB"}} {
		r := kvferry(t, append([]string{"dump", "--format", "parquet", src}, args...)...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	}
	to := filepath.Join(dir, "out")
	ok(t, "dump", "--format", "parquet", "--text=lossy", "-o", to+"/", src)
	if r := kvferry(t, "fingerprint", "parquet:"+to); r.code == cli.ExitOK || !strings.Contains(r.stderr, "leave --text=lossy out") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// treeOf returns the names and the contents of a dataset's files.
func treeOf(t *testing.T, dir string) (all string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*/*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, filepath.Join(dir, "_manifest.jsonl")) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += filepath.Base(path) + string(b)
	}
	return all
}

// duckdb returns a function that runs a query and returns its rows.
func duckdb(t *testing.T) func(query string) [][]string {
	t.Helper()
	path := redistest.DuckDB()
	if path == "" {
		t.Skipf("SKIPPED: needs duckdb; %s names a directory with it", redistest.EnginesVariable)
	}
	return func(query string) [][]string {
		t.Helper()
		cmd := exec.Command(path, "-csv", "-noheader", "-c", query)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", query, err, stderr.String())
		}
		rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
}

// duckColumns are the columns as the dump with --format csv --encode base64 has them.
const duckColumns = `base64(encode(db)), type, base64(key), coalesce(epoch_ms(expire_at)::VARCHAR, ''), CASE type WHEN 'list' THEN index::VARCHAR ELSE '' END,
	coalesce(id, ''), coalesce(base64(field), ''), coalesce(base64(value), ''), coalesce(base64(member), ''), coalesce(printf('%.17g', score), ''),
	coalesce(epoch_ms(field_expire_at)::VARCHAR, '')`

// csvRows returns the rows of a dump as DuckDB has them.
func csvRows(t *testing.T, src string) (out []string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(ok(t, "dump", "--format", "csv", "--encode", "base64", src))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if row[1] == "stream" && row[5] == "" { // an empty stream
			continue
		}
		row[0] = base64.StdEncoding.EncodeToString([]byte(row[0]))
		if score, err := strconv.ParseFloat(row[9], 64); err == nil {
			row[9] = strings.TrimPrefix(strings.ToLower(fmt.Sprintf("%.17g", score)), "+")
		}
		out = append(out, strings.Join(row, " "))
	}
	return out
}

// firstOther describes the first difference of two lists.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%.300s, want %.300s", got[i], want[i])
		}
	}
	return "one is shorter"
}

// TestParquetKeys checks that --keys-only has the keys, elements and bytes of the CSV, and that no command reads it for a whole.
func TestParquetKeys(t *testing.T) {
	t.Parallel()
	src := golden(t, "kvrocks-mixed")
	dir := parquetOf(t, "--keys-only", src)
	if r := kvferry(t, "fingerprint", "parquet:"+dir); r.code == cli.ExitOK || !strings.Contains(r.stderr, "rows of keys only") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	query := duckdb(t)
	var got, want []string
	for _, row := range query(fmt.Sprintf(`SELECT db, type, base64(key), coalesce(epoch_ms(expire_at)::VARCHAR, ''), elements, bytes
		FROM read_parquet('%s/**/*.parquet') WHERE redis_bytes > bytes AND slot BETWEEN 0 AND 16383`, dir)) {
		got = append(got, strings.Join(row, " "))
	}
	rows, err := csv.NewReader(strings.NewReader(ok(t, "dump", "--keys-only", "--format", "csv", "--encode", "base64", src))).
		ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		want = append(want, strings.Join(row, " "))
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got) < 100 || !slices.Equal(got, want) {
		t.Errorf("DuckDB has %d keys, the dump %d: %s", len(got), len(want), firstOther(got, want))
	}
}

// TestParquetDuckDB checks that DuckDB reads the same rows as our own dump has, value by value.
func TestParquetDuckDB(t *testing.T) {
	t.Parallel()
	query := duckdb(t)
	for _, src := range []string{golden(t, "bw-edge"), golden(t, "kvrocks-mixed"), golden(t, "ssdb-basic")} {
		dir := parquetOf(t, src)
		rows := query(fmt.Sprintf("SELECT %s FROM read_parquet('%s/**/*.parquet') WHERE kind IS NULL OR kind NOT IN ('stream','group','consumer','pending')",
			duckColumns, dir))
		var got []string
		for _, row := range rows {
			got = append(got, strings.Join(row, " "))
		}
		want := csvRows(t, src)
		slices.Sort(got)
		slices.Sort(want)
		if len(got) < 100 || !slices.Equal(got, want) {
			t.Errorf("%s: DuckDB has %d rows, the dump %d: %s", src, len(got), len(want), firstOther(got, want))
		}
	}
}

// TestParquetForeign loads what DuckDB exports in several codecs, by the mapping of its columns, into
// servers' directories.
func TestParquetForeign(t *testing.T) {
	t.Parallel()
	query := duckdb(t)
	src := golden(t, "kvrocks-mixed")
	dir := parquetOf(t, src)
	uses := map[string][]string{"string": {"value=c"}, "hash": {"field=f", "value=c"}, "list": {"index=i", "value=c"},
		"set": {"member=m"}, "zset": {"member=m", "score=s"}}
	types := []string{"string", "hash", "list", "set", "zset"}
	for n, codec := range []string{"snappy", "gzip", "zstd", "uncompressed", "brotli", "lz4_raw", "lz4_raw, parquet_version v2", "snappy, parquet_version v2",
		"brotli, parquet_version v2", "zstd, parquet_version v2"} {
		typ := types[n%len(types)]
		export := filepath.Join(t.TempDir(), typ+".parquet")
		query(fmt.Sprintf(`COPY (SELECT db AS d, key AS k, expire_at AS e, index AS i, field AS f, value AS c, member AS m, score AS s, field_expire_at AS fe
			FROM read_parquet('%s/type=%s/*.parquet') WHERE kind IS NULL ORDER BY hash(value), hash(index)) TO '%s' (FORMAT parquet, COMPRESSION %s)`,
			dir, typ, export, codec))
		args := []string{"--column", "db=d", "--column", "key=k", "--column", "expire_at=e"}
		for _, use := range uses[typ] {
			args = append(args, "--column", use)
		}
		if typ == "hash" {
			args = append(args, "--column", "field_expire_at=fe")
		}
		to := filepath.Join(t.TempDir(), "new")
		ok(t, append([]string{"convert", "parquet:" + export, "kvrocks:" + to}, args...)...)
		if typ == "string" || typ == "set" { // those of a kind were left out
			ok(t, append([]string{"diff", "parquet:" + export, to}, args...)...)
			continue
		}
		if got, want := fingerprintParts(t, to), fingerprintParts(t, "--type", typ, src); got != want {
			t.Errorf("%s: %s, want %s", typ, got, want)
		}
	}
	for args, want := range map[string]string{"--column key=k": "rows of type string need --column value=NAME", "": "name their columns: --column key=NAME"} {
		r := kvferry(t, append([]string{"dump", "parquet:" + dir + "/type=set"}, strings.Fields(args)...)...)
		if r.code == cli.ExitOK || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d: %s", args, r.code, r.stderr)
		}
	}
	for loc, want := range map[string]string{src: "--column: the source is not parquet:", "parquet:" + dir: "leave --column out"} {
		r := kvferry(t, "dump", "--column", "key=k", "--column", "value=c", loc)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	}
}

// TestDumpArrow checks the stream's frame, what does not go together with it, and, where pyarrow is
// installed, its rows.
func TestDumpArrow(t *testing.T) {
	t.Parallel()
	src := golden(t, "bw-edge")
	out := ok(t, "dump", "--format", "arrow", "--workers", "2", src)
	if !strings.HasPrefix(out, "\xff\xff\xff\xff") || !strings.HasSuffix(out, "\xff\xff\xff\xff\x00\x00\x00\x00") {
		t.Errorf("%d bytes", len(out))
	}
	for args, want := range map[string]string{"--keys-only": "do not go together with --format arrow",
		"--encode=base64": "do not go together with --format arrow", "--raw": "--raw and --format arrow do not go together"} {
		if r := kvferry(t, "dump", "--format", "arrow", args, src); r.code == cli.ExitOK || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
	if exec.Command("python3", "-c", "import pyarrow").Run() != nil {
		t.Skip("SKIPPED: needs pyarrow")
	}
	count := exec.Command("python3", "-c", "import pyarrow.ipc, sys\nprint(pyarrow.ipc.open_stream(sys.stdin.buffer).read_all().num_rows)")
	count.Stdin = strings.NewReader(out)
	got, err := count.CombinedOutput()
	if err != nil || strings.TrimSpace(string(got)) != fmt.Sprint(len(csvRows(t, src))) {
		t.Errorf("%s, %v", got, err)
	}
}

// TestParquetInParts checks that parts make the directory of one run, byte for byte, in any order, twice and at once, and
// that what does not fit is refused.
func TestParquetInParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, c := range []struct {
		src  string
		args []string
	}{
		{golden(t, "nemo-basic"), nil},
		{golden(t, "kvrocks-mixed"), []string{"--keys-only", "--type", "hash,string"}},
		{packedRDB, []string{"--text=lossy"}},
		{golden(t, "ssdb-odd"), nil},
	} {
		one, many := filepath.Join(dir, fmt.Sprint("one", i)), filepath.Join(dir, fmt.Sprint("many", i))
		args := append([]string{"dump", "--format", "parquet", "--now", "2026-01-01T00:00:00Z", c.src}, c.args...)
		want := kvferry(t, append(args, "-o", one)...)
		args = append(args, "-o", many)
		r := kvferry(t, append(args, "--finish")...)
		if r.code != cli.ExitMissing || !strings.Contains(r.stderr, "no part of it has run") {
			t.Errorf("no parts: exit %d, %s", r.code, r.stderr)
		}
		worst := 0
		for _, k := range []int{3, 1, 3} {
			r = kvferry(t, append(args, "--workers", fmt.Sprint(k), "--part", fmt.Sprintf("%d/3", k))...)
			worst = max(worst, r.code)
		}
		if !strings.Contains(r.stdout, "done already\n2 of 3 parts are done") {
			t.Errorf("twice: %s", r.stdout)
		}
		r = kvferry(t, append(args, "--finish")...)
		if r.code != cli.ExitMissing || !strings.Contains(r.stderr, "kvferry dump --part 2/3 --format parquet") ||
			strings.Contains(r.stderr, "--finish") {
			t.Errorf("a part is missing: exit %d, %s", r.code, r.stderr)
		}
		for _, c := range []struct{ arg, want string }{
			{"--part=2/4", "it has 3 parts, not 4"}, {"--memory=99MiB", "it has memory 256MiB, not 99MiB"}, {"--now=2026-01-02", "its --now is"},
			{"--match=x", "match"},
		} {
			r := kvferry(t, append(args, "--part=2/3", c.arg)...)
			if r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.want) {
				t.Errorf("%s: exit %d, %s", c.arg, r.code, r.stderr)
			}
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if r := kvferry(t, append(args, "--part", "2/3")...); r.code != cli.ExitOK && r.code != want.code {
					t.Errorf("at once: exit %d, %s", r.code, r.stderr)
				}
			})
		}
		both.Wait()
		worst = max(worst, kvferry(t, append(args, "--part", "2/3")...).code)
		if r = kvferry(t, append(args, "--finish")...); r.code != want.code || worst != want.code || r.stdout != want.stdout {
			t.Errorf("finish: exit %d, want %d, %s", r.code, want.code, r.stderr)
		}
		if got := treeBytes(t, many); got != treeBytes(t, one) || got == "" {
			t.Errorf("%s: the parts make something else", c.src)
		}
		if _, err := os.Stat(many + ".kvferry"); err == nil {
			t.Error("the work directory is still there")
		}
		if r = kvferry(t, append(args, "--finish")...); r.code != cli.ExitOK {
			t.Errorf("finished twice: exit %d, %s", r.code, r.stderr)
		}
		if r = kvferry(t, append(args, "--part", "1/3")...); r.code != cli.ExitOK || !strings.Contains(r.stdout, "the target is finished already") {
			t.Errorf("a part of what is finished: exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	}
}

// TestParquetPartsRefused checks that options without parts are refused by name.
func TestParquetPartsRefused(t *testing.T) {
	t.Parallel()
	src, out := golden(t, "nemo-basic"), filepath.Join(t.TempDir(), "out")
	now := []string{"dump", "--now", "5", "-o", out, src}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(now, "--part", "1/2"), "--part and --finish go with --format parquet"},
		{append(now, "--format", "parquet", "--part", "1/2", "-o", filepath.Join(src, "new")), "is inside the source"},
		{append(now, "--format", "csv", "--finish"), "--part and --finish go with --format parquet"},
		{append(now, "--format", "parquet", "--part", "1/2", "--finish"), "--part and --finish do not go"},
		{append(now, "--format", "parquet", "--part", "1/2", "--salvage"), "--salvage and --part do not go together"},
		{append(now, "--format", "parquet", "--part", "1/2", "--limit", "3"), "--limit"},
		{[]string{"dump", "--format", "parquet", "--part", "1/2", "-o", out, src}, "--part needs --now"},
		{[]string{"dump", "--format", "parquet", "--finish", "-o", out, src}, "--finish needs --now"},
		{[]string{"dump", "--format", "parquet", "--part", "1/2", "--now", "5", "-o", out, "redis://127.0.0.1:1"}, "it has no parts"},
	} {
		if r := kvferry(t, c.args...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
	ok(t, append(now, "--format", "parquet", "--part", "1/2")...)
	if r := kvferry(t, append(now, "--format", "parquet")...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "contains parts of this directory") {
		t.Errorf("one run: exit %d, %s", r.code, r.stderr)
	}
}
