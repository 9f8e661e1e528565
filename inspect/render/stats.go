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
	for _, t := range s.Types {
		if len(s.Types) == 1 {
			break // they are the largest of all
		}
		bigTable(&b, "Largest "+typeTitle(s, &t), t.Largest, s.Redis > 0)
	}
	prefixTable(&b, s)
	deletableTable(&b, s)
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

// typeTitle names the records of a type, with their database if there are several.
func typeTitle(s *stats.Result, t *stats.Type) string {
	if len(s.Databases) > 1 {
		return plural(t.Type, 0) + " of " + t.DB
	}
	return plural(t.Type, 0)
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
