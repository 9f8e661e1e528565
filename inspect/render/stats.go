package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kvferry/inspect"
	"kvferry/inspect/stats"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// table prints right-aligned columns. The last column is left-aligned if it holds text.
type table struct {
	w    *tabwriter.Writer
	text bool
}

func newTable(w io.Writer, columns ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	switch columns[len(columns)-1] {
	case "key", "prefix", "codecs":
		t.text = true
	}
	t.row(columns)
	return t
}

func (t *table) row(cells []string) {
	if last := len(cells) - 1; t.text {
		fmt.Fprintf(t.w, "%s\t  %s\n", strings.Join(cells[:last], "\t"), cells[last])
		return
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t")+"\t")
}

func (t *table) add(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = escape.Text(fmt.Sprint(c)) // escaped, so a tab in a name does not split the cell
	}
	t.row(texts)
}

// Stats prints the content of a dataset as tables.
func Stats(w io.Writer, s *stats.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", s.Format, record.Plural(int64(len(s.Databases)), "database"))
	typesTable(&b, s)
	distributions(&b, s)
	expiryTable(&b, s)
	bigTable(&b, "Largest by bytes", s.TopBytes, s.Redis > 0)
	bigTable(&b, "Largest by elements", s.TopElements, s.Redis > 0)
	bigTable(&b, "Largest in Redis", s.TopRedis, true)
	prefixTable(&b, s)
	garbageTable(&b, s)
	filesTable(&b, s)
	_, err := io.WriteString(escape.Writer(w), b.String())
	return err
}

func typesTable(b *strings.Builder, s *stats.Result) {
	t := newTable(b, inRedis(s.Redis > 0, 5, "in Redis", "db", "type", "records", "elements", "bytes", "on disk", "expiring", "expired")...)
	shared := false
	var sum stats.Type
	for _, c := range s.Types {
		disk := Bytes(c.Disk)
		if c.Shared {
			disk, shared = disk+"*", true
		}
		t.add(inRedis[any](s.Redis > 0, 5, Bytes(c.Redis), c.DB, c.Type, c.Records, c.Elements, Bytes(c.Bytes), disk, c.Expiring, c.Expired)...)
		sum.Records += c.Records
		sum.Elements += c.Elements
		sum.Bytes += c.Bytes
		sum.Expiring += c.Expiring
		sum.Expired += c.Expired
	}
	t.add(inRedis[any](s.Redis > 0, 5, Bytes(s.Redis), "", "all", sum.Records, sum.Elements, Bytes(sum.Bytes), "", sum.Expiring, sum.Expired)...)
	t.w.Flush()
	if s.Redis > 0 {
		b.WriteString("in Redis: estimate of MEMORY USAGE in Redis 7.0 with default settings; all: with the hash tables of the keys\n")
	}
	if shared {
		b.WriteString("* of files that hold other types too\n")
	}
}

// inRedis inserts the cell of an optional column.
func inRedis[T any](is bool, at int, cell T, cells ...T) []T {
	if is {
		cells = slices.Insert(cells, at, cell)
	}
	return cells
}

func distributions(b *strings.Builder, s *stats.Result) {
	b.WriteString("\nSizes of records (bytes, elements; quantiles within 1.6 %)\n")
	t := newTable(b, "db", "type", "p50", "p99", "max", "elements p50", "p99", "max", "key p50", "max")
	for _, c := range s.Types {
		t.add(c.DB, c.Type, Bytes(c.Sizes.P50), Bytes(c.Sizes.P99), Bytes(c.Sizes.Max),
			c.Lengths.P50, c.Lengths.P99, c.Lengths.Max, c.KeySizes.P50, c.KeySizes.Max)
	}
	t.w.Flush()
}

func expiryTable(b *strings.Builder, s *stats.Result) {
	b.WriteString("\nExpiry\n")
	t := newTable(b, inRedis(s.Redis > 0, 2, "in Redis", "", "records")...)
	for _, e := range s.Expiry {
		if e.Records > 0 {
			t.add(inRedis[any](s.Redis > 0, 2, Bytes(e.Redis), e.Name, e.Records)...)
		}
	}
	t.w.Flush()
}

func bigTable(b *strings.Builder, title string, keys []stats.BigKey, redis bool) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	t := newTable(b, inRedis(redis, 1, "in Redis", "bytes", "elements", "db", "type", "key")...)
	for _, k := range keys {
		t.add(inRedis[any](redis, 1, Bytes(k.Redis), Bytes(k.Bytes), k.Elements, k.DB, k.Type, cell(record.Quote(k.Key)))...)
	}
	t.w.Flush()
}

// cell escapes tabs in quoted text, which would start a new column.
func cell(s string) string { return strings.ReplaceAll(s, "\t", `\t`) }

func prefixTable(b *strings.Builder, s *stats.Result) {
	if len(s.Prefixes) == 0 {
		return
	}
	b.WriteString("\nPrefixes\n")
	t := newTable(b, inRedis(s.Redis > 0, 3, "in Redis", "records", "elements", "bytes", "prefix")...)
	for _, p := range s.Prefixes {
		name := cell(record.Quote(p.Prefix))
		if len(p.Prefix) == 0 {
			name = "(none)"
		}
		t.add(inRedis[any](s.Redis > 0, 3, Bytes(p.Redis), p.Records, p.Elements, Bytes(p.Bytes), name)...)
	}
	if m := s.MorePrefixes; m.Records > 0 {
		t.add(inRedis[any](s.Redis > 0, 3, Bytes(m.Redis), m.Records, m.Elements, Bytes(m.Bytes), "(others)")...)
	}
	t.w.Flush()
	if s.PrefixMisses > 0 {
		fmt.Fprintf(b, "too many prefixes to count: each line may lack up to %s\n", Bytes(s.PrefixMisses))
	}
}

// garbageColumn counts one kind of dead entries. Columns with only zeros are left out.
type garbageColumn struct {
	name  string
	count func(*stats.Garbage) int64
}

var garbageColumns = []garbageColumn{
	{"expired", func(g *stats.Garbage) int64 { return g.Rows[record.Expired] }},
	{"stale", func(g *stats.Garbage) int64 { return g.Rows[record.Stale] }},
	{"deleted", func(g *stats.Garbage) int64 { return g.Rows[record.Deleted] }},
	{"orphan", func(g *stats.Garbage) int64 { return g.Rows[record.Orphan] }},
	{"malformed", func(g *stats.Garbage) int64 { return g.Rows[record.Malformed] }},
	{"superseded", func(g *stats.Garbage) int64 { return g.Superseded + g.RangeDeleted + g.Folded }},
	{"tombstones", func(g *stats.Garbage) int64 { return g.Tombstones }},
}

func garbageTable(b *strings.Builder, s *stats.Result) {
	if len(s.Garbage) == 0 {
		return
	}
	b.WriteString("\nRows\n")
	columns := slices.DeleteFunc(slices.Clone(garbageColumns), func(c garbageColumn) bool {
		return !slices.ContainsFunc(s.Garbage, func(g stats.Garbage) bool { return c.count(&g) != 0 })
	})
	head := []string{"keyspace", "entries", "live"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	t := newTable(b, append(head, "on disk", "to free")...)
	var freed int64
	for i := range s.Garbage {
		g := &s.Garbage[i]
		cells := []any{g.Keyspace, g.Entries, g.Live()}
		for _, c := range columns {
			cells = append(cells, c.count(g))
		}
		t.add(append(cells, Bytes(g.Bytes), Bytes(g.Freed))...)
		freed += g.Freed
	}
	t.w.Flush()
	fmt.Fprintf(b, "a conversion would free about %s\n", Bytes(freed))
}

func filesTable(b *strings.Builder, s *stats.Result) {
	f := &s.Files
	if len(f.Levels) == 0 && f.Logs.Files == 0 {
		return
	}
	b.WriteString("\nFiles\n")
	t := newTable(b, "keyspace", "level", "files", "bytes", "entries", "tombstones", "codecs")
	for _, l := range f.Levels {
		entries := fmt.Sprint(l.Entries)
		if l.Unknown > 0 {
			entries = "unknown"
		}
		level := fmt.Sprint(l.Level)
		if l.Level < 0 { // an LMDB file has no levels
			level = ""
		}
		t.add(l.Keyspace, level, l.Files, Bytes(l.Bytes), entries, l.Deletes, strings.Join(l.Codecs, "+"))
	}
	for _, l := range f.Blobs {
		t.add(l.Keyspace, "blobs", l.Files, Bytes(l.Bytes), l.Entries, "", strings.Join(l.Codecs, "+"))
	}
	if f.Logs.Files > 0 {
		t.add("logs", "", f.Logs.Files, Bytes(f.Logs.Bytes), "", "", "")
	}
	if f.Other.Files > 0 {
		t.add("MANIFEST, CURRENT", "", f.Other.Files, Bytes(f.Other.Bytes), "", "", "")
	}
	n, bytes := f.Sum()
	t.add("all", "", n, Bytes(bytes), "", "", "")
	t.w.Flush()
	var blobs, garbage int64
	for _, l := range f.Blobs {
		blobs, garbage = blobs+l.Bytes, garbage+l.Garbage
	}
	if blobs > 0 {
		fmt.Fprintf(b, "%s of the %s in blob files belong to values that no row refers to\n", Bytes(garbage), Bytes(blobs))
	}
}

// The JSON form of statistics. Its names are part of the public interface.
type (
	jsonStats struct {
		Format       string        `json:"format"`
		NowMS        int64         `json:"now_ms"`
		Databases    []string      `json:"databases"`
		Types        []jsonType    `json:"types"`
		Expiry       []jsonBucket  `json:"expiry"`
		TopBytes     []jsonBig     `json:"top_by_bytes"`
		TopElements  []jsonBig     `json:"top_by_elements"`
		TopRedis     []jsonBig     `json:"top_in_redis,omitempty"`
		Redis        int64         `json:"redis_bytes,omitempty"`
		Prefixes     []jsonPrefix  `json:"prefixes"`
		MorePrefixes jsonPrefix    `json:"more_prefixes"`
		PrefixMisses int64         `json:"prefix_bytes_missed_at_most"`
		Rows         []jsonGarbage `json:"rows"`
		Freed        int64         `json:"bytes_to_free"`
		Levels       []jsonLevel   `json:"levels"`
		Blobs        []jsonLevel   `json:"blobs"`
		Logs         jsonLevel     `json:"logs"`
		Other        jsonLevel     `json:"other_files"`
		Files        int           `json:"files"`
		Bytes        int64         `json:"bytes"`
	}
	jsonType struct {
		DB       jsonl.Text         `json:"db"`
		Type     string             `json:"type"`
		Records  int64              `json:"records"`
		Elements int64              `json:"elements"`
		Bytes    int64              `json:"bytes"`
		Redis    int64              `json:"redis_bytes,omitempty"`
		Disk     int64              `json:"bytes_on_disk"`
		Shared   bool               `json:"files_shared_with_other_types"`
		Expiring int64              `json:"expiring"`
		Expired  int64              `json:"expired"`
		Sizes    stats.Distribution `json:"record_bytes"`
		Lengths  stats.Distribution `json:"record_elements"`
		KeySizes stats.Distribution `json:"key_bytes"`
	}
	jsonBucket struct {
		Name    string `json:"name"`
		BelowMS int64  `json:"below_ms,omitempty"`
		Records int64  `json:"records"`
		Redis   int64  `json:"redis_bytes,omitempty"`
	}
	jsonBig struct {
		DB       jsonl.Text `json:"db"`
		Type     string     `json:"type"`
		Key      Text       `json:"key"`
		Bytes    int64      `json:"bytes"`
		Redis    int64      `json:"redis_bytes,omitempty"`
		Elements int64      `json:"elements"`
		ExpireMS int64      `json:"expire_at_ms"`
	}
	jsonPrefix struct {
		Prefix   *Text `json:"prefix,omitempty"`
		Records  int64 `json:"records"`
		Elements int64 `json:"elements"`
		Bytes    int64 `json:"bytes"`
		Redis    int64 `json:"redis_bytes,omitempty"`
	}
	jsonGarbage struct {
		Keyspace     string           `json:"keyspace"`
		Entries      int64            `json:"entries"`
		Visible      int64            `json:"visible"`
		Superseded   int64            `json:"superseded"`
		Tombstones   int64            `json:"tombstones"`
		RangeDeleted int64            `json:"range_deleted"`
		Folded       int64            `json:"folded"`
		Live         int64            `json:"live"`
		Classes      map[string]int64 `json:"classes"`
		Disk         int64            `json:"bytes_on_disk"`
		Freed        int64            `json:"bytes_to_free"`
	}
	jsonLevel struct {
		Keyspace string   `json:"keyspace,omitempty"`
		Level    int      `json:"level"`
		Files    int      `json:"files"`
		Bytes    int64    `json:"bytes"`
		Entries  int64    `json:"entries"`
		Deletes  int64    `json:"tombstones"`
		Unknown  int      `json:"files_without_counts"`
		Garbage  int64    `json:"garbage_bytes,omitempty"`
		Codecs   []string `json:"codecs"`
	}
)

// StatsJSON prints the content of a dataset as one JSON document.
func StatsJSON(w io.Writer, s *stats.Result) error { return indented(w, newJSONStats(s)) }

func newJSONStats(s *stats.Result) *jsonStats {
	out := &jsonStats{Format: s.Format, NowMS: s.NowMS, Databases: s.Databases, Types: []jsonType{}, Expiry: []jsonBucket{},
		TopBytes: bigKeys(s.TopBytes), TopElements: bigKeys(s.TopElements), TopRedis: bigKeys(s.TopRedis), Redis: s.Redis, Prefixes: []jsonPrefix{},
		MorePrefixes: newJSONPrefix(&s.MorePrefixes), PrefixMisses: s.PrefixMisses, Rows: []jsonGarbage{},
		Levels: []jsonLevel{}, Blobs: []jsonLevel{}, Logs: newJSONLevel(&s.Files.Logs), Other: newJSONLevel(&s.Files.Other)}
	out.Files, out.Bytes = s.Files.Sum()
	out.MorePrefixes.Prefix = nil
	for _, t := range s.Types {
		out.Types = append(out.Types, jsonType{jsonl.Text(t.DB), t.Type.String(), t.Records, t.Elements, t.Bytes, t.Redis, t.Disk, t.Shared,
			t.Expiring, t.Expired, t.Sizes, t.Lengths, t.KeySizes})
	}
	for _, e := range s.Expiry {
		out.Expiry = append(out.Expiry, jsonBucket{e.Name, e.Below.Milliseconds(), e.Records, e.Redis})
	}
	for i := range s.Prefixes {
		out.Prefixes = append(out.Prefixes, newJSONPrefix(&s.Prefixes[i]))
	}
	for i := range s.Garbage {
		out.Rows = append(out.Rows, newJSONGarbage(&s.Garbage[i]))
		out.Freed += s.Garbage[i].Freed
	}
	for i := range s.Files.Levels {
		out.Levels = append(out.Levels, newJSONLevel(&s.Files.Levels[i]))
	}
	for i := range s.Files.Blobs {
		out.Blobs = append(out.Blobs, newJSONLevel(&s.Files.Blobs[i]))
	}
	return out
}

func bigKeys(keys []stats.BigKey) []jsonBig {
	out := []jsonBig{}
	for _, k := range keys {
		out = append(out, jsonBig{jsonl.Text(k.DB), k.Type.String(), k.Key, k.Bytes, k.Redis, k.Elements, k.ExpireMS})
	}
	return out
}

func newJSONPrefix(p *stats.Prefix) jsonPrefix {
	prefix := Text(p.Prefix)
	return jsonPrefix{&prefix, p.Records, p.Elements, p.Bytes, p.Redis}
}

func newJSONGarbage(g *stats.Garbage) jsonGarbage {
	out := jsonGarbage{Keyspace: g.Keyspace, Entries: g.Entries, Visible: g.Visible, Superseded: g.Superseded,
		Tombstones: g.Tombstones, RangeDeleted: g.RangeDeleted, Folded: g.Folded, Live: g.Live(),
		Classes: make(map[string]int64), Disk: g.Bytes, Freed: g.Freed}
	for c, n := range g.Rows {
		if n > 0 {
			out.Classes[record.Class(c).String()] = n
		}
	}
	return out
}

func newJSONLevel(l *stats.Level) jsonLevel {
	out := jsonLevel{l.Keyspace, l.Level, l.Files, l.Bytes, l.Entries, l.Deletes, l.Unknown, l.Garbage, l.Codecs}
	if out.Codecs == nil {
		out.Codecs = []string{}
	}
	return out
}

// FingerprintText prints a fingerprint as a table.
func FingerprintText(w io.Writer, f *inspect.FingerprintFile) error {
	var b strings.Builder
	t := newTable(&b, "database", "type", "records", "elements", "digest")
	for _, p := range f.Parts {
		t.add(p.DB, p.Type, p.Records, p.Elements, p.Millis)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
