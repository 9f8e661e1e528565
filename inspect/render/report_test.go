package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"kvferry/inspect"
	"kvferry/inspect/verify"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// damaged returns a verification with findings of every kind.
func damaged() *Result {
	findings := []record.Finding{
		{Kind: "damaged-block", Severity: record.Error, DB: "0", Keyspace: "hashes/data_cf", Place: record.Place{File: "hashes/000012.sst", Off: 4096, Level: 6}, Detail: "checksum mismatch"},
		{Kind: "count-mismatch", Severity: record.Error, DB: "0", Type: record.Hash, Key: []byte("user:1"), Keyspace: "hashes/default",
			Place: record.Place{File: "hashes/000010.sst", Off: 17, Level: 0, Seq: 9}, Detail: "count is 3, rows found: 2"},
		{Kind: "zset-bad-score", Severity: record.Error, DB: "1", Type: record.ZSet, Key: []byte("\xff\x00<>&\"'"), Place: record.Place{Level: -1}, Detail: "score \x01 is NaN ]]>"},
		{Kind: "orphan-rows", Severity: record.Warning, DB: "0", Type: record.Set, Key: []byte{}, Place: record.Place{File: "/elsewhere/000001.log", Level: -1}, Detail: "data rows without a meta row: 3"},
		{Kind: "brand-new", Severity: record.Note, Place: record.Place{Level: -1}, Detail: "of a kind that no list has"},
	}
	groups := []verify.Group{{GroupID: verify.GroupID{Kind: "count-mismatch", Severity: record.Error, DB: "0", Type: record.Hash,
		Store: "hashes"},
		Count: 3, First: []byte("user:1"), Last: []byte("user:3"), Missing: 2000, Short: 3, None: 1}}
	return &Result{Rest: "kvferry convert", Outcome: &verify.Outcome{Format: "blackwidow", Databases: []string{"0", "1"},
		Records: 10, Elements: 20, Groups: groups,
		Rows: 40, Entries: 50, Files: 3, Bytes: 12345, Data: 12000, Findings: findings, Gravest: findings, Skipped: 2,
		Unread: []string{"database 0, hash"},
		Counts: []verify.KindCount{{Kind: "count-mismatch", Severity: record.Error, Count: 3},
			{Kind: "damaged-block", Severity: record.Error, Count: 1},
			{Kind: "zset-bad-score", Severity: record.Error, Count: 1}, {Kind: "orphan-rows", Severity: record.Warning, Count: 1}, {Kind: "brand-new", Severity: record.Note, Count: 1}}},
		Tool: "test", Source: "/data/pika dump", Selected: inspect.Selected{Filters: filter.Conditions{"sample": {"100"},
			"type": {"hash"}}}, NowMS: 1700000000000, Seconds: 1.5, FailOn: record.Error}
}

func sound() *Result {
	return &Result{Outcome: &verify.Outcome{Format: "nemo", Databases: []string{"0"}, Records: 1, Elements: 1},
		Tool: "test", Source: "db", NowMS: 1700000000000, FailOn: record.Error}
}

func TestSARIFIsValid(t *testing.T) {
	f, err := os.Open("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft4
	if err := c.AddResource("sarif.json", f); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Result{damaged(), sound()} {
		var b bytes.Buffer
		if err := SARIF(&b, r); err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%#v", err)
		}
		doc["runs"].([]any)[0].(map[string]any)["results"] = []any{map[string]any{"level": "fatal"}}
		if schema.Validate(doc) == nil {
			t.Error("the schema takes anything")
		}
	}
}

func TestSARIFSays(t *testing.T) {
	var b bytes.Buffer
	if err := SARIF(&b, damaged()); err != nil {
		t.Fatal(err)
	}
	var doc sarifLog
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	run := doc.Runs[0]
	if len(run.Results) != 5 || run.Invocations[0].Code != 3 {
		t.Fatalf("%d results, exit code %d", len(run.Results), run.Invocations[0].Code)
	}
	for _, r := range run.Results {
		if rule := run.Tool.Driver.Rules[r.RuleIndex]; rule.ID != r.RuleID || rule.Short.Text == "" {
			t.Errorf("%s points to the rule %+v", r.RuleID, rule)
		}
	}
	if at := run.Results[1].Locations[0].Physical; at.Artifact.URI != "file:///data/pika%20dump/hashes/000010.sst" ||
		at.Region.ByteOffset != 17 {
		t.Errorf("place %+v", at)
	}
	if at := run.Results[3].Locations[0].Physical; at.Artifact.URI != "file:///elsewhere/000001.log" {
		t.Errorf("a log elsewhere is at %s", at.Artifact.URI)
	}
	ids := make(map[string]bool)
	for _, r := range run.Results {
		ids[r.Fingerprints["kvferry/v1"]] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d identities of 5 findings", len(ids))
	}
}

// node is an element of an XML document.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Kids    []node     `xml:",any"`
	Text    string     `xml:",chardata"`
}

// The part of the JUnit schema (Windy Road's JUnit.xsd for Apache Ant's tasks) that reports use: the children of an
// element in order, each once, optional with ?, repeated with *; and the attributes with their types, optional with
// ?.
var junitSchema = map[string]struct{ kids, attrs string }{
	"testsuites": {"testsuite*", ""},
	"testsuite": {"properties testcase* system-out system-err",
		"name:token1 package:token id:int timestamp:time hostname:token1 tests:int failures:int errors:int time:decimal skipped?:int"},
	"properties": {"property*", ""},
	"property":   {"", "name:token1 value:string"},
	"testcase":   {"skipped? error? failure?", "name:token classname:token time:decimal"},
	"failure":    {"", "message?:string type:string"},
	"error":      {"", "message?:string type:string"},
	"system-out": {"", ""}, "system-err": {"", ""},
}

var junitTypes = map[string]*regexp.Regexp{
	"string": regexp.MustCompile(`(?s)^.*$`), "token": regexp.MustCompile(`^(\S+( \S+)*)?$`), "token1": regexp.MustCompile(`^\S+( \S+)*$`),
	"int": regexp.MustCompile(`^-?\d{1,9}$`), "decimal": regexp.MustCompile(`^-?\d+(\.\d+)?$`),
	"time": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`),
}

// junitErrors lists the deviations of an element from the schema.
func junitErrors(n *node) (out []string) {
	name := n.XMLName.Local
	rule, ok := junitSchema[name]
	if !ok {
		return []string{"no element " + name}
	}
	attrs := make(map[string]string)
	for _, a := range n.Attrs {
		attrs[a.Name.Local] = a.Value
	}
	for _, spec := range strings.Fields(rule.attrs) {
		key, typ, _ := strings.Cut(spec, ":")
		key, optional := strings.CutSuffix(key, "?")
		v, ok := attrs[key]
		if ok && !junitTypes[typ].MatchString(v) || !ok && !optional {
			out = append(out, fmt.Sprintf("%s: %s=%q is no %s", name, key, v, typ))
		}
		delete(attrs, key)
	}
	if len(attrs) > 0 {
		out = append(out, fmt.Sprintf("%s: unknown attributes %v", name, attrs))
	}
	rest := n.Kids
	for _, spec := range strings.Fields(rule.kids) {
		kid := strings.TrimRight(spec, "?*")
		i := 0
		for i < len(rest) && rest[i].XMLName.Local == kid && (i == 0 || strings.HasSuffix(spec, "*")) {
			out = append(out, junitErrors(&rest[i])...)
			i++
		}
		if i == 0 && kid == spec {
			out = append(out, name+": no "+kid)
		}
		rest = rest[i:]
	}
	if len(rest) > 0 {
		out = append(out, name+": out of place: "+rest[0].XMLName.Local)
	}
	return out
}

func junitOf(t *testing.T, r *Result) node {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var n node
	if err := xml.Unmarshal(b.Bytes(), &n); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return n
}

func TestJUnitIsValid(t *testing.T) {
	for _, r := range []*Result{damaged(), sound()} {
		n := junitOf(t, r)
		if errs := junitErrors(&n); errs != nil {
			t.Errorf("%q", errs)
		}
		// The check itself must detect errors.
		n.Kids[0].Attrs = n.Kids[0].Attrs[1:]
		n.Kids[0].Kids[1], n.Kids[0].Kids[0] = n.Kids[0].Kids[0], n.Kids[0].Kids[1]
		if errs := junitErrors(&n); len(errs) < 2 {
			t.Errorf("a broken report passes: %q", errs)
		}
	}
}

func TestJUnitSays(t *testing.T) {
	suite := junitOf(t, damaged()).Kids[0]
	attr := func(n *node, name string) string {
		i := slices.IndexFunc(n.Attrs, func(a xml.Attr) bool { return a.Name.Local == name })
		return n.Attrs[i].Value
	}
	tests, _ := strconv.Atoi(attr(&suite, "tests"))
	if tests != len(record.FindingKinds())+1 || attr(&suite, "failures") != "3" {
		t.Errorf("%d tests, %s failures", tests, attr(&suite, "failures"))
	}
	for i := range suite.Kids {
		c := &suite.Kids[i]
		if c.XMLName.Local != "testcase" || attr(c, "name") != "count-mismatch" {
			continue
		}
		if len(c.Kids) != 1 || attr(&c.Kids[0], "message") != "3 × count-mismatch" ||
			!strings.Contains(c.Kids[0].Text, `"user:1": count is 3`) ||
			!strings.Contains(c.Kids[0].Text, "and 2 more") {
			t.Errorf("case %+v", c)
		}
	}
}

func TestJSONReport(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, damaged()); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Passed   bool
		Counts   []struct{ Count int }
		Findings []struct {
			Severity string
			Key      any
			Follows  *int `json:"follows_from"`
			Place    map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if f := doc.Findings; f[1].Follows == nil || *f[1].Follows != 0 || f[0].Follows != nil || f[3].Follows != nil {
		t.Errorf("only the second finding follows from another, the first: %+v", f)
	}
	if doc.Passed || len(doc.Counts) != 5 || doc.Findings[0].Key != nil || doc.Findings[1].Key != "user:1" ||
		fmt.Sprint(doc.Findings[2].Key) != "map[base64:/wA8PiYiJw==]" || doc.Findings[3].Key != "" ||
		doc.Findings[2].Place != nil {
		t.Errorf("%+v", doc)
	}
}

func TestTextReport(t *testing.T) {
	var b strings.Builder
	if err := Findings(&b, damaged()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"error damaged-block db 0: checksum mismatch [hashes/data_cf, hashes/000012.sst, offset 4096, level 6]\n" +
			"  follows: error count-mismatch db 0: 3 hashes lost 2,000 elements; 1 of them lost all: keys \"user:1\" … \"user:3\"\n",
		"warning orphan-rows db 0 set", "not all records could be read: database 0, hash\n",
		"\nlost: the rows of unreadable tables, blocks or pages (2); 2,000 elements (99 % of 2,020) of 3 keys, 1 of which lost all; the unreadable parts of hashes/000012.sst\n" +
			"certainty: a lower bound; a key whose rows are all in the unreadable part leaves no trace\n" +
			"next: kvferry help findings, \"What cannot be passed over\"\n",
		"       3  error    count-mismatch", "/data/pika dump: 10 records, 20 elements, 50 entries in 3 files (12.1 KiB): 5 errors, 1 warning, 1 note\n" +
			"as of 2023-11-14T22:13:20Z, by kvferry test\nfilters: --type hash --sample 100; ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in\n%s", want, b.String())
		}
	}
	if text := b.String(); strings.Contains(text, "hash \"user:1\"") || strings.Contains(text, "of error count-mismatch") {
		t.Errorf("a consequence is listed beside its cause:\n%s", text)
	}
	b.Reset()
	if err := Findings(&b, sound()); err != nil || b.String() != "db: 1 record, 1 element: sound\nas of 2023-11-14T22:13:20Z, by kvferry test\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestReportsSay: every form names the source, the filters, the time and the version, and has the verdict.
func TestReportsSay(t *testing.T) {
	for name, c := range map[string]struct {
		print func(io.Writer, *Result) error
		want  []string
	}{
		"text": {Findings, nil},
		"json": {JSON, []string{`"now_ms": 1700000000000`, `"verdict": {`, `"how_sure": "a lower bound`}},
		"junit": {JUnit, []string{`name="source" value="/data/pika dump"`, `name="filters" value="--type hash --sample 100"`, `name="as_of" value="2023-11-14T22:13:20Z"`,
			`name="lost" value="the rows of`, `name="how_sure"`, `name="next" value="kvferry help`, "&#xA;lost: the rows of"}},
		"sarif": {SARIF, []string{`"source": "/data/pika dump"`, `"now_ms": 1700000000000`, `"verdict": {`, `"how_sure": "a lower bound`, `"next": "kvferry help`}},
	} {
		var b strings.Builder
		if err := c.print(&b, damaged()); err != nil {
			t.Fatal(err)
		}
		for _, want := range append(c.want, "/data/pika dump", "sample", "100", "test", "the rows of unreadable tables", "damaged-block in hashes/000012.sst") {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, b.String())
			}
		}
	}
	r := damaged()
	if !strings.HasPrefix(r.Line(), "/data/pika dump: 5 errors, 1 warning, 1 note; cause: ") || strings.Contains(r.Line(), "\n") {
		t.Error(r.Line())
	}
}

// TestVerdict checks the end of the text: what is lost, how sure that is, and the next command.
func TestVerdict(t *testing.T) {
	finding := func(kind string, s record.Severity, file string) record.Finding {
		return record.Finding{Kind: kind, Severity: s, Place: record.Place{File: file}, Detail: "d"}
	}
	lost := func(missing, none, count int64) []verify.Group {
		return []verify.Group{{GroupID: verify.GroupID{Kind: "count-mismatch", Severity: record.Error}, Count: count,
			Short: count, Missing: missing, None: none}}
	}
	unread := func(n int64, f record.Finding) record.Finding {
		f.Unread = n
		return f
	}
	says := func(n int64, f record.Finding) record.Finding {
		f.Lost, f.Sure = "the end", "quite"
		return unread(n, f)
	}
	warned := lost(7, 0, 3)
	warned[0].Severity = record.Warning
	for name, c := range map[string]struct {
		v    verify.Outcome
		want []string
	}{
		"all of keys": {verify.Outcome{Elements: 60, Groups: lost(40, 2, 2), Data: 2000, Findings: []record.Finding{unread(150, finding("damaged-block", record.Error, "a/1.sst"))}},
			[]string{"lost: the rows in 150 B that could not be read, 7.5 % of the 2.0 KiB of tables and logs; 40 elements (40 % of 100), all of 2 keys", "certainty: a lower bound", "next: rest"}},
		"some of keys": {verify.Outcome{Elements: 60, Groups: lost(40, 0, 1), Findings: []record.Finding{finding("count-mismatch", record.Error, "a/1.sst")}},
			[]string{"lost: 40 elements (40 % of 100) of 1 key", "certainty: everything was read; see", "next: rest"}},
		"what sound datasets have": {verify.Outcome{Elements: 60, Data: 1000, Groups: append(warned, verify.Group{GroupID: verify.GroupID{Kind: "orphan-rows", Severity: record.Warning, Store: "a"}, Count: 9}),
			Findings: []record.Finding{unread(999, finding("file-size-mismatch", record.Error, "a/1.sst")),
				finding("orphan-rows", record.Warning, "a/2.sst")}},
			[]string{"lost: the rows in 999 B that could not be read, 99.9 % of the 1000 B of tables and logs\n",
				"certainty: a lower bound; a key whose rows are all in the unreadable part leaves no trace; rows without a meta row, which may also remain from deleted keys: of 9 keys\n", "next: rest"}},
		"values": {verify.Outcome{Findings: []record.Finding{finding("damaged-value", record.Error, "x.rdb"), finding("newer", record.Error, "x.rdb")}},
			[]string{"lost: rows and values not read, or not to their end: 2 (damaged-value 1, newer 1)", "certainty: everything else was read", "next: rest"}},
		"the rest of a file": {verify.Outcome{Data: 100, Findings: []record.Finding{says(60, finding("newer", record.Error, "x.rdb"))}},
			[]string{"lost: the end\n", "certainty: quite", "next: rest"}},
		"any key": {verify.Outcome{Findings: []record.Finding{finding("aof-command", record.Error, "x.aof")}},
			[]string{"lost: rows and values not read, or not to their end: 1 (aof-command 1)", "certainty: a lower bound; a command that does not name", "next: rest"}},
		"order": {verify.Outcome{Findings: []record.Finding{finding("key-order", record.Error, "a/1.sst")}},
			[]string{"lost: no rows; inconsistent data (1 error)", "certainty: everything was read; see", "next: rest"}},
		"all": {verify.Outcome{Unread: []string{"all of kv"}, Findings: []record.Finding{finding("zset-bad-score", record.Error, "a/1.sst")}},
			[]string{"lost: unreadable data: all of kv\n", "certainty: a lower bound", "next: kvferry help findings, \"What"}},
		"of a list of files": {verify.Outcome{Findings: []record.Finding{finding("missing-file", record.Error, "hashes/CURRENT")}},
			[]string{"lost: no rows of tables and logs", "certainty: all tables and logs of the directory", "next: rest"}},
		"of a list and a log": {verify.Outcome{Findings: []record.Finding{finding("missing-file", record.Error, "CURRENT"), finding("damaged-file", record.Error, "7.log"), finding("damaged-file", record.Error, "8.log")}},
			[]string{"lost: the unreadable parts of 7.log and 1 other file", "certainty: a lower bound", "next: rest"}},
		"no rows": {verify.Outcome{Findings: []record.Finding{finding("zset-bad-score", record.Error, "a/1.sst")}},
			[]string{"lost: no rows; inconsistent data (1 error)", "certainty: everything was read; see", "next: rest"}},
		"a warning": {verify.Outcome{Findings: []record.Finding{finding("orphan-rows", record.Warning, "a/1.sst")}},
			[]string{"lost: nothing", "certainty: everything was read, and", "next: kvferry help findings"}},
		"a note": {verify.Outcome{Findings: []record.Finding{finding("left-behind", record.Note, "a/1.sst")}}, nil},
	} {
		v := c.v
		for _, f := range v.Findings {
			n := verify.KindCount{Kind: f.Kind, Severity: f.Severity, Count: 1, Unread: f.Unread}
			if f.Unread > 0 {
				n.Places = 1
			}
			v.Counts = append(v.Counts, n)
		}
		v.Gravest, v.Findings = v.Findings, nil // as with --max-findings 0
		var b strings.Builder
		if err := Findings(&b, &Result{Outcome: &v, Rest: "rest"}); err != nil {
			t.Fatal(err)
		}
		_, verdict, _ := strings.Cut(b.String(), "\nlost")
		lines := strings.Split(strings.TrimSuffix("lost"+verdict, "\n"), "\n")
		if c.want == nil {
			lines = lines[1:]
		}
		if len(lines) != len(c.want) {
			t.Errorf("%s: %q", name, b.String())
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(lines[i]+"\n", want) {
				t.Errorf("%s: %q, want %q", name, lines[i], want)
			}
		}
	}
}

// TestFewOfManyFindings checks that the text shows a few findings of a kind and counts the rest by severity.
func TestFewOfManyFindings(t *testing.T) {
	v := verify.Outcome{Counts: []verify.KindCount{{Kind: "bad-value", Severity: record.Error, Count: 1234}}}
	for i := range 9 {
		v.Findings = append(v.Findings, record.Finding{Kind: "bad-value", Severity: record.Error, Key: fmt.Append(nil, i),
			Type: record.String, Detail: "d"})
	}
	var b strings.Builder
	if err := Findings(&b, &Result{Outcome: &v}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "error bad-value string"); n != samples || !strings.Contains(b.String(), "and 1,229 more of error bad-value") {
		t.Errorf("%d shown:\n%s", n, b.String())
	}
}
