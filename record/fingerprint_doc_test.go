package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// vector is a line of the test vectors in docs/fingerprint.md.
type vector struct {
	Type     string `json:"type"`
	Key      string `json:"key"`
	Expire   int64  `json:"expire"`
	Last     string `json:"last,omitempty"`
	Elements []any  `json:"elements"`
	MS       string `json:"ms"`
	S        string `json:"s"`
}

var vectors = []vector{
	{Type: "string", Key: "k", Elements: []any{"v"}},
	{Type: "string", Key: "", Elements: []any{""}},
	{Type: "hash", Key: "h", Expire: 1700000000123, Elements: []any{[]any{"a", "1"}, []any{"b", "2"}}},
	{Type: "hash", Key: "h", Expire: 1700000001000, Elements: []any{[]any{"b", "2"}, []any{"a", "1"}}},
	{Type: "list", Key: "l", Elements: []any{"x", "x"}},
	{Type: "set", Key: "s", Elements: []any{"a", "b", ""}},
	{Type: "zset", Key: "z", Elements: []any{[]any{"m", "-0"}}},
	{Type: "zset", Key: "z", Elements: []any{[]any{"m", "0"}, []any{"n", "-inf"}, []any{"o", "3.14159265358979"}}},
	{Type: "stream", Key: "x", Last: "5-1", Elements: []any{[]any{"5-0", "f", "v"}, []any{"5-1", "f", "v", "g", ""}}},
	{Type: "stream", Key: "empty", Last: "7-0", Elements: []any{}},
}

// newVectors are the vectors of version 2.
var newVectors = []vector{
	{Type: "hash", Key: "h", Elements: []any{[]any{"a", "1", "1800000000000"}, []any{"b", "2"}}},
	{Type: "stream", Key: "x", Last: "5-1", Elements: []any{[]any{"5-1", "f", "v"}, []any{"group", "g", "5-1", "1"},
		[]any{"consumer", "g", "c"}, []any{"pending", "g", "5-1", "c", "1700000000000", "2"}, []any{"group", "h", "0-0", "-1"}}},
	{Type: "other", Key: "m", Elements: []any{[]any{"MBbloom--", "bytes"}}},
}

func parseID(t *testing.T, s string) []byte {
	t.Helper()
	ms, seq, _ := strings.Cut(s, "-")
	a, err := strconv.ParseUint(ms, 10, 64)
	b, err2 := strconv.ParseUint(seq, 10, 64)
	if err != nil || err2 != nil {
		t.Fatalf("id %q", s)
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b)
}

func (v *vector) digest(t *testing.T) Digest {
	t.Helper()
	typ, err := ParseType(v.Type)
	if err != nil {
		t.Fatal(err)
	}
	h := &Header{Type: typ, Key: []byte(v.Key), ExpireMS: v.Expire}
	if v.Last != "" {
		h.Last = parseID(t, v.Last)
	}
	var elems []Element
	for _, e := range v.Elements {
		if s, ok := e.(string); ok {
			if typ == Set {
				elems = append(elems, Element{Name: []byte(s)})
			} else {
				elems = append(elems, Element{Value: []byte(s)})
			}
			continue
		}
		var parts []string
		for _, p := range e.([]any) {
			parts = append(parts, p.(string))
		}
		el := Element{Name: []byte(parts[0])}
		switch typ {
		case Hash:
			el.Value = []byte(parts[1])
			if len(parts) > 2 {
				el.ExpireMS = parseInt(t, parts[2])
			}
		case Other:
			el.Value = []byte(parts[1])
		case ZSet:
			if el.Score, err = strconv.ParseFloat(parts[1], 64); err != nil {
				t.Fatal(err)
			}
		case Stream:
			if grouped(t, &el, parts) {
				break
			}
			el.Name = parseID(t, parts[0])
			for i := 1; i < len(parts); i += 2 {
				el.Value = AppendPair(el.Value, []byte(parts[i]), []byte(parts[i+1]))
			}
		}
		elems = append(elems, el)
	}
	return digestOf(h, elems...)
}

func parseInt(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// grouped decodes an element of a consumer group and reports whether parts describe one.
func grouped(t *testing.T, e *Element, parts []string) bool {
	switch parts[0] {
	case "group":
		e.Kind, e.Value = Group, AppendGroup(nil, &GroupState{Last: parseID(t, parts[2]), Read: parseInt(t, parts[3])})
	case "consumer":
		e.Kind, e.Value = Consumer, AppendConsumer(nil, &ConsumerState{Name: []byte(parts[2]), SeenMS: 7, ActiveMS: -1})
	case "pending":
		e.Kind, e.Value = Pending, AppendPending(nil, &PendingEntry{ID: parseID(t, parts[2]), Consumer: []byte(parts[3]),
			DeliveredMS: parseInt(t, parts[4]), Count: parseInt(t, parts[5])})
	default:
		return false
	}
	e.Name = []byte(parts[1])
	return true
}

// vectorBlock formats vectors as in the page.
func vectorBlock(t *testing.T, vectors []vector) string {
	var b bytes.Buffer
	var sum Digest
	b.WriteString("```\n")
	for _, v := range vectors {
		d := v.digest(t)
		sum.Add(d)
		v.MS, v.S = d.Millis.String(), d.Seconds.String()
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	fmt.Fprintf(&b, `{"records":%d,"elements":%d,"ms":"%s","s":"%s"}`+"\n```\n", sum.Records, sum.Elements, sum.Millis,
		sum.Seconds)
	return b.String()
}

// TestFingerprintIsDocumented computes the page's vectors, which include those of the design. KVFERRY_REWRITE=1
// rewrites them.
func TestFingerprintIsDocumented(t *testing.T) {
	want := checkVectors(t, "<!-- vectors -->\n", vectors)
	for _, r := range []string{"ccf1ddff63306a1a2d9cdc748b5078ed", "cc4343364dbb4242d6a24c237b8922ce",
		"a03611d4632aebf9e24e7ae3cf173469", "f2b33eb5f2b889a4d852f5ed315aaaed"} {
		if !strings.Contains(want, r) {
			t.Errorf("%s, fixed by the design, is not among the vectors", r)
		}
	}
	checkVectors(t, "<!-- vectors of version 2 -->\n", newVectors)
	for i, v := range append(vectors[:len(vectors):len(vectors)], newVectors...) {
		if d := v.digest(t); d.New != (i >= len(vectors)) {
			t.Errorf("%+v: version 2 is %v", v, d.New)
		}
	}
}

// checkVectors compares a block of the page with vectors and returns the correct block.
func checkVectors(t *testing.T, begin string, vectors []vector) string {
	t.Helper()
	const end = "<!-- end of vectors -->\n"
	path := filepath.Join(root, "docs", "fingerprint.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	block, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the vectors", path)
	}
	want := vectorBlock(t, vectors)
	if block == want {
		return want
	}
	if os.Getenv("KVFERRY_REWRITE") == "" {
		t.Fatalf("%s has other vectors than the code; KVFERRY_REWRITE=1 go test ./record writes them anew:\n%s", path, want)
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
	return want
}
