package filter

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/record"
)

func TestConditionsInJSON(t *testing.T) {
	keys := map[string]struct{}{"a": {}, "b": {}}
	all := Selection{Filter: Filter{Types: record.Of(record.Set) | record.Of(record.Hash), DBs: []string{"bar", "\xff"},
		Match: []string{"<b>*", "a"}, Exclude: []string{"b"}, Regex: regexp.MustCompile(`^\d`), Keys: keys, Sample: 5,
		Range: &format.Span{Lo: []byte("a..b"), Hi: []byte("c")}}, ExpireFrom: &Moment{Ahead: time.Hour},
		ExpireTo: &Moment{At: now.Add(2 * time.Hour)}, NoExpiry: true, MinBytes: 4096, MaxBytes: 8192, MinElements: 3}
	c := all.Conditions(now)
	if len(c) != len(Names()) {
		t.Errorf("of %d names: %v", len(Names()), c)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":["hash","set"]`, `"db":["bar",{"base64":"/w=="}]`, `"key-file":["2 keys, digest `,
		`"ttl-from":["2023-11-14T23:13:20Z"]`, `"min-bytes":["4096"]`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	var back Conditions
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("read back as %v, %v", back, err)
	}
	if data, err := json.Marshal(new(Selection).Conditions(now)); err != nil || string(data) != "{}" {
		t.Errorf("of nothing: %s, %v", data, err)
	}
	for _, bad := range []string{`{"most-bytes":["5"]}`, `{"where":["a function"]}`, `{"type":"set"}`, `[]`, `{"type":[5]}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s: read as %v", bad, back)
		}
	}
}

func TestConditionsAreTheSame(t *testing.T) {
	for _, c := range []struct {
		a, b Conditions
		want bool
	}{
		{nil, Conditions{}, true},
		{Conditions{"match": {"a", "b"}}, Conditions{"match": {"b", "a", "b"}}, true},
		{Conditions{"match": {"a", "b"}}, Conditions{"match": {"a"}}, false},
		{Conditions{"match": {"a"}}, nil, false},
		{Conditions{"db": {"a"}}, Conditions{"db": {"b"}}, true}, // compared under another name
	} {
		if got := c.a.Same(c.b, "match"); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
		if got := c.b.Same(c.a, "match"); got != c.want {
			t.Errorf("%v and %v: %v", c.b, c.a, got)
		}
	}
}

func TestConditionValues(t *testing.T) {
	c := Conditions{"type": {"hash", "set"}, "db": {"bar", "a,b", `q"`, ""}, "match": {"a,b", "c"}}
	for name, want := range map[string]string{"type": "hash,set", "db": `bar|"a,b"|"q"""|""`, "match": "a,b|c", "regex": ""} {
		if got := strings.Join(c.Values(name), "|"); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for ms, want := range map[int64]string{1700000000500: "2023-11-14T22:13:20.5Z", 999999999999000: "999999999999",
		-999999999999500: "-999999999999.5"} {
		if got := MomentText(time.UnixMilli(ms)); got != want {
			t.Errorf("%d: %s", ms, got)
		}
	}
}
