package aof

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/store"
)

// goldens is the directory of the logs written by servers.
const goldens = "../../../shared/golden"

// unpack unpacks a golden and returns its directory.
func unpack(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join(goldens, name+".tar.gz"))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return filepath.Join(dir, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lines calls f for each line of a gzipped JSON lines file.
func lines(t testing.TB, name string, f func([]byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(goldens, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

func text(t testing.TB, v any) string {
	b, err := base64.StdEncoding.DecodeString(v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// truth reads the server's answers, in the form of redistest.
func truth(t testing.TB, name string) map[string]string {
	extra := extras(t, name)
	out := map[string]string{}
	lines(t, name+".truth.jsonl.gz", func(line []byte) {
		var r struct {
			DB, Type, Key string
			Expire        int64 `json:"expire_at_ms"`
			Value         any
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		key := text(t, r.Key)
		id := r.DB + "/" + key
		var list []string
		values, _ := r.Value.([]any)
		for _, v := range values {
			list = append(list, item(t, r.Type, v, extra[id]))
		}
		switch r.Type {
		case "string":
			list = []string{text(t, r.Value)}
		case "set":
			sort.Strings(list)
		case "hash", "zset":
			slices.Sort(list)
		case "stream":
			list = append(list, extra[id].stream(t)...)
		}
		out[id] = redistest.Form(r.Type, r.Expire, list)
	})
	return out
}

func item(t testing.TB, typ string, v any, x *extra) string {
	switch typ {
	case "hash":
		p := v.([]any)
		return text(t, p[0]) + "=" + text(t, p[1]) + x.expiry(text(t, p[0]))
	case "zset":
		p := v.([]any)
		return text(t, p[0]) + "=" + redistest.Score(p[1].(string))
	case "stream":
		p := v.([]any)
		var pairs []string
		for _, f := range p[1].([]any) {
			pairs = append(pairs, text(t, f.([]any)[0]), text(t, f.([]any)[1]))
		}
		return redistest.Entry(p[0].(string), pairs)
	}
	return text(t, v)
}

// extra is the server's metadata of a key.
type extra struct {
	Fields [][]any `json:"field_expire_at_ms"`
	Stream *struct {
		LastID  string `json:"last_id"`
		Deleted string `json:"max_deleted_entry_id"`
		Added   int64  `json:"entries_added"`
		Groups  []group
	}
}

type group struct {
	Name      string
	LastID    string `json:"last_id"`
	Read      *int64 `json:"entries_read"`
	Pel       [][]any
	Consumers []struct{ Name string }
}

func extras(t testing.TB, name string) map[string]*extra {
	out := map[string]*extra{}
	first := true
	lines(t, name+".extra.jsonl.gz", func(line []byte) {
		if first {
			first = false
			return
		}
		var k struct{ DB, Key string }
		x := new(extra)
		if err := errors.Join(json.Unmarshal(line, &k), json.Unmarshal(line, x)); err != nil {
			t.Fatalf("%s: %v", line[:min(len(line), 300)], err)
		}
		out[k.DB+"/"+text(t, k.Key)] = x
	})
	return out
}

// expiry is the suffix of a field with an expiry.
func (x *extra) expiry(field string) string {
	if x == nil {
		return ""
	}
	for _, f := range x.Fields {
		if b, err := base64.StdEncoding.DecodeString(f[0].(string)); err == nil && string(b) == field {
			return fmt.Sprintf("@%d", int64(f[1].(float64)))
		}
	}
	return ""
}

func (x *extra) stream(t testing.TB) []string {
	s := x.Stream
	out := []string{fmt.Sprintf("last=%s deleted=%s added=%d", s.LastID, s.Deleted, s.Added)}
	slices.SortFunc(s.Groups, func(a, b group) int { return strings.Compare(text(t, a.Name), text(t, b.Name)) })
	for _, g := range s.Groups {
		read := int64(-1)
		if g.Read != nil {
			read = *g.Read
		}
		out = append(out, fmt.Sprintf("group %s last=%s read=%d", text(t, g.Name), g.LastID, read))
		var names []string
		for _, c := range g.Consumers {
			names = append(names, text(t, c.Name))
		}
		sort.Strings(names)
		for _, name := range names {
			out = append(out, "consumer "+name)
		}
		for _, p := range g.Pel {
			out = append(out, fmt.Sprintf("pending %s %s %d", p[0], text(t, p[1]), int64(p[3].(float64))))
		}
	}
	return out
}

// open opens a log and collects the findings.
func open(t testing.TB, dir string, salvage bool) (format.Source, []record.Finding, error) {
	t.Helper()
	var findings []record.Finding
	src, err := New().Open(context.Background(), dir, &format.OpenOptions{Options: store.Options{
		TempDir: t.TempDir(), Salvage: salvage, Report: func(f record.Finding) { findings = append(findings, f) }}})
	return src, findings, err
}

// contents reads all records of a source, from all its spans.
func contents(t testing.TB, src format.Source, spans int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, db := range src.Databases() {
		list, err := src.Split(db, src.Types(db), spans)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range list {
			r, err := formattest.Walk(src.Records(context.Background(), db, src.Types(db), span, &format.Env{Now: time.Now()}))
			if err != nil {
				t.Fatal(err)
			}
			redistest.Read(t, out, r.Reader)
		}
	}
	for id := range out {
		if strings.Contains(id, "/FUNCTION ") {
			delete(out, id)
		}
	}
	return out
}

// expanded writes a log that replaces the scripts in the goldens with the commands they run.
func expanded(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := []byte(writtenBy("redis 3.2.12", "")) // in scripts commands may fail
	for c := NewCommands(f, path, 0, -1); ; {
		args, err := c.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var a []string
		for _, b := range args {
			a = append(a, string(b))
		}
		for _, effect := range effects(t, a) {
			out = redistest.Append(out, effect...)
		}
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func effects(t *testing.T, a []string) [][]string {
	if a[0] != "EVAL" {
		return [][]string{a}
	}
	key, value := a[3], a[len(a)-1]
	switch script := a[1]; {
	case strings.HasPrefix(script, "for i=1,3 do redis.call('RPUSH',KEYS[1],ARGV[1]..i)"):
		return [][]string{{"RPUSH", key, value + "1"}, {"RPUSH", key, value + "2"}, {"RPUSH", key, value + "3"}}
	case strings.HasPrefix(script, "redis.call('SET',KEYS[1],ARGV[1]) redis.call('INCR',KEYS[2])"):
		return [][]string{{"SET", key, value}, {"INCR", a[4]}}
	case strings.HasPrefix(script, "redis.call('DEL',KEYS[1]); redis.call('SADD',KEYS[1],ARGV[1])"):
		return [][]string{{"DEL", key}, {"SADD", key, value}}
	}
	t.Fatalf("%q: another script", a[1])
	return nil
}

func TestGoldens(t *testing.T) {
	for _, c := range []struct{ name, findings string }{
		{"aof-multipart-plain", ""},
		{"aof-plain", ""},
		{"aof-plain-r32", ""},
		{"aof-preamble", ""},
		{"aof-multipart", ""},
		{"aof-multipart-v90", "aof-near appendonly.aof.3.incr.aof 39248"}, // STOREDIST: the last bits of a distance,
		{"aof-truncated", "aof-cut appendonly.aof.3.incr.aof 40785"},
		{"aof-multi-open", "aof-cut appendonly.aof.3.incr.aof 40848"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := unpack(t, c.name)
			if strings.HasPrefix(c.name, "aof-plain") {
				expanded(t, filepath.Join(dir, "appendonly.aof"))
			}
			src, got, err := open(t, dir, true)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			var kinds []string
			for _, f := range got {
				if f.Kind != FindRefused {
					kinds = append(kinds, fmt.Sprintf("%s %s %d", f.Kind, f.Place.File, f.Place.Off))
				}
			}
			if s := strings.Join(kinds, "; "); s != c.findings {
				t.Errorf("findings: %s", s)
			}
			want, have := truth(t, c.name), contents(t, src, 4)
			if strings.HasPrefix(c.name, "aof-plain") {
				dense(want)
				dense(have)
			}
			if c.name == "aof-multipart-v90" {
				if have["0/z:8"] != `zset 0 ["7=2269.9286532344495"]` || want["0/z:8"] != `zset 0 ["7=2269.92865323445"]` {
					t.Errorf("the distance is %s, the server's %s", have["0/z:8"], want["0/z:8"])
				}
				delete(want, "0/z:8")
				delete(have, "0/z:8")
			}
			if c.name == "aof-preamble" { // 6.2 lacks these
				drop(want, " deleted= added=0")
				drop(have, " deleted=[0-9-]* added=[0-9]*")
			}
			for _, d := range redistest.Diff(want, have, 8) {
				t.Error(d)
			}
		})
	}
}

// drop removes a part of streams.
func drop(records map[string]string, part string) {
	re := regexp.MustCompile(part)
	for id, r := range records {
		if strings.HasPrefix(r, "stream ") {
			records[id] = re.ReplaceAllString(r, "")
		}
	}
}

// dense writes sparse HyperLogLogs as their registers: up to 3.2, PFMERGE made them dense, later versions do not.
func dense(records map[string]string) {
	for id, r := range records {
		head, value, ok := strings.Cut(r, "HYLL")
		if !ok || !strings.HasPrefix(r, "string ") {
			continue
		}
		b, err := strconv.Unquote(`"` + strings.TrimSuffix(value, `"]`) + `"`)
		if err != nil || len(b) < 12 {
			continue
		}
		records[id] = fmt.Sprintf("%s %x", head, registers(b))
	}
}

// registers expands the data after HYLL.
func registers(b string) []byte {
	out := make([]byte, 0, 16384)
	regs := b[12:]
	if b[0] == 0 {
		for i := range 16384 {
			v := uint(regs[i*6/8])
			if i*6/8+1 < len(regs) {
				v |= uint(regs[i*6/8+1]) << 8
			}
			out = append(out, byte(v>>(i*6%8)&63))
		}
		return out
	}
	for i := 0; i < len(regs); i++ {
		c := regs[i]
		switch {
		case c&0x80 != 0:
			out = append(out, bytes.Repeat([]byte{c>>2&31 + 1}, int(c&3)+1)...)
		case c&0x40 == 0:
			out = append(out, make([]byte, int(c)+1)...)
		default:
			i++
			out = append(out, make([]byte, (int(c&63)<<8|int(regs[i]))+1)...)
		}
	}
	return out
}

// TestScripts reads a log with scripts: they are rejected with the location of the first, or skipped with a finding.
func TestScripts(t *testing.T) {
	dir := unpack(t, "aof-plain")
	_, _, err := open(t, dir, false)
	var refused *CommandError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Why, "EVAL") || refused.Off != 3120536 {
		t.Errorf("%v", err)
	}
	src, findings, err := open(t, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	n := 0
	for _, f := range findings {
		if f.Kind == FindCommand && f.Severity == record.Error && f.Key == nil {
			n++
		}
	}
	if n != 70 {
		t.Errorf("%d commands were passed over, want 70", n)
	}
}
