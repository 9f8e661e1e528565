package command

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kvferry/internal/testkit/redistest"
	"kvferry/nemo"
	"kvferry/record"
)

// shop are the records of docs/analysts.md.
func shop() []small {
	at := func(s small, ms int64) small { s.expire = ms; return s }
	january, march := int64(1893456000000), int64(1898553600000) // of 2030
	return []small{
		smallRecord(record.Hash, "user:1", "age=31", "city=Oslo", "name=Ann"), smallRecord(record.Hash, "user:2", "age=46", "city=Oslo", "name=Bo, \"B\""),
		smallRecord(record.Hash, "user:3", "age=20", "city=Rome", "name=\xff"), smallRecord(record.Hash, "user:4", "name=Dee"),
		at(smallRecord(record.String, "session:a", "x\r\ny"), january), at(smallRecord(record.String, "session:b", "it's"), march),
		smallRecord(record.String, "session:c", "a\x00b"), smallRecord(record.ZSet, "board", "al", "bo", "cy", "it's"),
		smallRecord(record.List, "queue:mail", "1", "2", "2"), smallRecord(record.Set, "\xfe", "m", "n"),
	}
}

// answers are those of docs/analysts.md, with numbers as Go formats them.
const answers = `hash,4,10
list,1,3
set,1,2
string,3,3
zset,1,4
user,4
session,3
*,1
it's,3
cy,2
bo,1
Oslo,38.5
Rome,20
session:a
`

// TestAnalysts asks the questions of docs/analysts.md with each tool that exists.
func TestAnalysts(t *testing.T) {
	src, dir := buildSmall(t, nemo.New(), shop()...), t.TempDir()
	for args := range commandsOf(t, "analysts.md", dir) {
		for i, arg := range args {
			switch {
			case arg == "/data/shop":
				args[i] = src
			case args[max(0, i-1)] == "-o":
				args[i] = filepath.Join(dir, arg)
			}
		}
		ok(t, args...)
	}
	data, err := os.ReadFile("../../../docs/analysts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, title, script string }{
		{redistest.DuckDB(), "DuckDB", `"$TOOL" -csv -noheader -f "$SCRIPT"`},
		{onPath("sqlite3", "--version"), "sqlite3", `"$TOOL" shop.db < all.sql && "$TOOL" -csv shop.db < "$SCRIPT"`},
		{onPath("python3", "-c", "import pandas"), "pandas", `"$TOOL" "$SCRIPT"`},
		{onPath("jq", "--version"), "jq", `sh -e "$SCRIPT"`},
	} {
		t.Run(c.title, func(t *testing.T) {
			if c.tool == "" {
				t.Skipf("SKIPPED: needs %s; %s names a directory with duckdb", c.title, redistest.EnginesVariable)
			}
			script := filepath.Join(dir, c.title)
			if err := os.WriteFile(script, []byte(indented(string(data), c.title)), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-ec", c.script)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOOL="+c.tool, "SCRIPT="+script)
			out, err := cmd.CombinedOutput()
			if got := plainAnswers(t, string(out)); err != nil || got != answers {
				t.Errorf("%v, %s\nread as\n%s", err, out, got)
			}
		})
	}
}

// indented returns the indented lines below a heading.
func indented(page, title string) string {
	_, section, _ := strings.Cut(page, "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var b strings.Builder
	for line := range strings.Lines(section) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			b.WriteString(code)
		}
	}
	return b.String()
}

// plainAnswers reads CSV and formats it with numbers alike. Three prefixes have one key each: any of them may be third.
func plainAnswers(t *testing.T, out string) string {
	r := csv.NewReader(strings.NewReader(out))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var b strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			if f, err := strconv.ParseFloat(cell, 64); err == nil {
				row[j] = strconv.FormatFloat(f, 'g', -1, 64)
			}
		}
		if i == 7 {
			row[0] = "*"
		}
		b.WriteString(strings.Join(row, ",") + "\n")
	}
	return b.String()
}

// onPath returns the path of a program that can run with these arguments, or "".
func onPath(name string, args ...string) string {
	path, err := exec.LookPath(name)
	if err != nil || exec.Command(path, args...).Run() != nil {
		return ""
	}
	return path
}

// TestDumpSQL checks that sqlite3 has the rows of a dump as CSV, and that a database exists whole or not at all.
func TestDumpSQL(t *testing.T) {
	sqlite, dir := onPath("sqlite3", "--version"), t.TempDir()
	if sqlite == "" {
		t.Skip("SKIPPED: needs sqlite3")
	}
	statements := []byte(ok(t, "dump", "--format", "sql", buildSmall(t, nemo.New(), shop()...)))
	load := func(db string, sql []byte) error {
		cmd := exec.Command(sqlite, filepath.Join(dir, db))
		cmd.Stdin = bytes.NewReader(sql)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	query := func(db, sql string) string {
		out, err := exec.Command(sqlite, filepath.Join(dir, db), sql).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", sql, err, out)
		}
		return string(out)
	}
	if err := load("all.db", statements); err != nil {
		t.Fatal(err)
	}
	const cells = `SELECT quote(key) || quote(field) || quote(value) FROM hash WHERE key = 'user:3' AND field = 'name';
		SELECT quote(value) || expire_at FROM string WHERE key = 'session:a'; SELECT quote(value) || typeof(expire_at) FROM string WHERE key > 'session:b';
		SELECT quote(key) || quote(member) FROM "set"; SELECT idx || value FROM list; SELECT typeof(score) || member FROM zset WHERE score = 3;`
	const want = "'user:3''name'X'FF'\n'x\r\ny'2030-01-01T00:00:00.000Z\nX'610062'null\nX'FE''m'\nX'FE''n'\n01\n12\n22\nrealit's\n"
	if got := query("all.db", cells); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := load("all.db", statements); err == nil {
		t.Error("a second dump went into the same database")
	}
	for _, n := range []int{1, 2, 3} {
		cut := statements[:len(statements)*n/4]
		_ = load("cut.db", cut) // a cut statement may be an error
		if got := query("cut.db", "SELECT count(*) FROM sqlite_master"); got != "0\n" {
			t.Errorf("%d bytes of %d leave tables: %s", len(cut), len(statements), got)
		}
	}
}

// today and earlier are the records of docs/analysis.md.
func today() []small {
	at := func(s small, ms int64) small { s.expire = ms; return s }
	return []small{
		smallRecord(record.Hash, "user:1", "city=Oslo", "name=Ann"), smallRecord(record.Hash, "user:2", "name=Bo"),
		smallRecord(record.Hash, "user:old:3", "city=Rome", "name=Cy"),
		at(smallRecord(record.String, "session:a", "same"), 1893456000000), at(smallRecord(record.String, "session:b", "same"), 1893556000000),
		at(smallRecord(record.String, "session:c", "other"), 1898553600000), smallRecord(record.String, "page:1", strings.Repeat("x", 1000)),
		smallRecord(record.Set, "tag:new", "p1", "p2", "p3"), smallRecord(record.Set, "tag:sale", "p2", "p3", "p4", "p5"), smallRecord(record.Set, "online", "1", "7"),
		smallRecord(record.ZSet, "board", "al", "bo"), smallRecord(record.List, "queue:mail", "1", "2", "2"),
	}
}

func earlier() []small {
	return []small{
		smallRecord(record.Hash, "user:1", "city=Oslo", "name=Ann"), smallRecord(record.String, "page:1", "x"), smallRecord(record.String, "page:2", "x"),
	}
}

// TestAnalysis runs docs/analysis.md in DuckDB. The page for Spark has the same questions; its views must
// have their columns.
func TestAnalysis(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	questions := indented(page, "Questions")
	if n := strings.Count(questions, ";\n"); n != 15 {
		t.Errorf("%d questions", n)
	}
	for _, name := range []string{"keys", "old", "elements"} {
		for _, title := range []string{"DuckDB", "Spark SQL"} {
			if !strings.Contains(indented(page, title), "VIEW "+name+" AS SELECT") {
				t.Errorf("%s: no view %s", title, name)
			}
		}
	}
	tool := redistest.DuckDB()
	if tool == "" {
		t.Skipf("SKIPPED: needs DuckDB; %s names a directory with duckdb", redistest.EnginesVariable)
	}
	dir := t.TempDir()
	sources := map[string]string{"/data/shop": buildSmall(t, nemo.New(), today()...),
		"/backups/shop": buildSmall(t, nemo.New(), earlier()...)}
	for args := range commandsOf(t, "analysis.md", dir) {
		for i, arg := range args {
			if src := sources[arg]; src != "" {
				args[i] = src
			} else if args[max(0, i-1)] == "-o" {
				args[i] = filepath.Join(dir, arg)
			}
		}
		ok(t, args...)
	}
	cmd := exec.Command(tool, "-csv", "-noheader", "-c", indented(page, "DuckDB")+questions)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != analysis {
		t.Errorf("%v:\n%s", err, out)
	}
}

// analysis are the answers of docs/analysis.md.
const analysis = `page:,1,1006
tag:,2,29
user:,3,57
NULL,2,33
user:old:,1,24
2030,1,2
2030,3,1
user:,3,57
NULL,2,33
tag:,2,29
page:,1,1006
queue:,1,13
string,page:1,1,1006
zset,board,2,25
hash,user:old:3,2,24
hash,user:1,2
list,queue:mail,3
set,tag:sale,4
zset,board,2
0,1,8
1,10,164
3,1,1006
same,2,8
p2
p3
7
name,3
city,2
page:,-1,992
session:,3,40
user:,2,36
tag:,2,29
queue:,1,13
gone,page:2
new,board
new,online
new,queue:mail
new,session:a
new,session:b
new,session:c
new,tag:new
new,tag:sale
new,user:2
new,user:old:3
601,1,1006
15905,1,25
4708,1,24
0,5,1064
1,4,60
2,3,54
`
