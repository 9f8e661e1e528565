package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"kvferry/inspect/verify"
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
	return &Result{Outcome: &verify.Outcome{Format: "blackwidow", Databases: []string{"0", "1"}, Records: 10, Elements: 20,
		Rows: 40, Entries: 50, Files: 3, Bytes: 12345, Findings: findings, Skipped: 2, Unread: []string{"database 0, hash"},
		Counts: []verify.KindCount{{Kind: "count-mismatch", Severity: record.Error, Count: 3}, {Kind: "damaged-block", Severity: record.Error, Count: 1},
			{Kind: "zset-bad-score", Severity: record.Error, Count: 1}, {Kind: "orphan-rows", Severity: record.Warning, Count: 1}, {Kind: "brand-new", Severity: record.Note, Count: 1}}},
		Tool: "test", Source: "/data/pika dump", NowMS: 1700000000000, Seconds: 1.5, FailOn: record.Error}
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
	if at := run.Results[1].Locations[0].Physical; at.Artifact.URI != "file:///data/pika%20dump/hashes/000010.sst" || at.Region.ByteOffset != 17 {
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
		if len(c.Kids) != 1 || attr(&c.Kids[0], "message") != "3 × count-mismatch" || !strings.Contains(c.Kids[0].Text, `"user:1": count is 3`) ||
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
			Place    map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Passed || len(doc.Counts) != 5 || doc.Findings[0].Key != nil || doc.Findings[1].Key != "user:1" ||
		fmt.Sprint(doc.Findings[2].Key) != "map[base64:/wA8PiYiJw==]" || doc.Findings[3].Key != "" || doc.Findings[2].Place != nil {
		t.Errorf("%+v", doc)
	}
}

func TestTextReport(t *testing.T) {
	var b strings.Builder
	if err := Findings(&b, damaged()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`error count-mismatch db 0 hash "user:1": count is 3, rows found: 2 [hashes/default, hashes/000010.sst, offset 17, level 0, seq 9]`,
		"and 2 findings more (--max-findings)", "not all records could be read: database 0, hash\nhow to get at the rest: kvferry help findings, \"What cannot be passed over\"\n",
		"unreadable tables, blocks or pages: 2; their rows are missing: other findings may follow from that\n" +
			"the rest can be had with convert --allow-loss damaged and with dump --salvage\n",
		"       3  error    count-mismatch", "/data/pika dump: 10 records, 20 elements, 50 entries in 3 files (12.1 KiB): 5 errors, 1 warning, 1 note",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Findings(&b, sound()); err != nil || b.String() != "db: 1 record, 1 element: sound\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 40: "1.0 TiB", 1<<63 - 1: "8.0 EiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
