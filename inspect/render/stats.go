package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kvferry/inspect"
	"kvferry/inspect/stats"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// newTable begins a table with its head.
func newTable(columns ...string) *page.Columns {
	t := new(page.Columns)
	switch columns[len(columns)-1] {
	case "key", "prefix", "codecs":
		t.Text = true
	default:
		for t.Labels < len(columns) && slices.Contains([]string{"", "db", "database", "keyspace", "type"}, columns[t.Labels]) {
			t.Labels++
		}
	}
	head := make([]any, len(columns))
	for i, c := range columns {
		head[i] = c
	}
	t.Add(head...)
	return t
}

// aboutLines prints the time and version of a result, and its filters; filtered describes the numbers they do not apply to.
func aboutLines(tool string, now int64, of *inspect.Selected, filtered string) []string {
	lines := []string{fmt.Sprintf("as of %s, by kvferry %s", timeText(now), tool)}
	words := of.Filters.All()
	if of.Expired == "keep" {
		words = append(words, "--expired", "keep")
	}
	if len(words) > 0 {
		lines = append(lines, fmt.Sprintf("filters: %s; %s", escape.Shell(words), filtered))
	}
	return lines
}

// onDisk describes numbers that filters do not change.
const onDisk = "bytes on disk, rows and files include records that the filters leave out"

// Stats prints the content of a dataset as tables. tool is kvferry's version.
func Stats(w io.Writer, tool string, s *stats.Result) error {
	b := page.TextFor(w)
	fmt.Fprintf(b, "%s: %s, %s\n", escape.Text(s.Source), s.Format, record.Count(int64(len(s.Databases)), "database"))
	fmt.Fprintf(b, "%s\n\n", strings.Join(aboutLines(tool, s.NowMS, &s.Selected, onDisk), "\n"))
	typesTable(b, s)
	distributions(b, s)
	expiryTable(b, s)
	bigTable(b, "Largest by bytes", s.TopBytes, s.Redis > 0)
	bigTable(b, "Largest by elements", s.TopElements, s.Redis > 0)
	bigTable(b, "Largest in Redis", s.TopRedis, true)
	for _, t := range s.Types {
		if len(s.Types) == 1 {
			break // they are the largest of all
		}
		bigTable(b, "Largest "+typeTitle(s, &t), t.Largest, s.Redis > 0)
	}
	prefixTable(b, s)
	deletableTable(b, s)
	garbageTable(b, s)
	filesTable(b, s)
	_, err := io.WriteString(page.Painted(w), b.String())
	return err
}

func typesTable(b *page.Text, s *stats.Result) {
	t := newTable(inRedis(s.Redis > 0, 5, "in Redis", "db", "type", "records", "elements", "bytes", "on disk", "expiring",
		"expired")...)
	shared := false
	var sum stats.Type
	for _, c := range s.Types {
		disk := record.Bytes(c.Disk)
		if c.Shared {
			disk, shared = disk+"*", true
		}
		t.Add(inRedis[any](s.Redis > 0, 5, record.Bytes(c.Redis), c.DB, c.Type, c.Records, c.Elements, record.Bytes(c.Bytes),
			disk, c.Expiring, c.Expired)...)
		sum.Records += c.Records
		sum.Elements += c.Elements
		sum.Bytes += c.Bytes
		sum.Expiring += c.Expiring
		sum.Expired += c.Expired
	}
	t.Add(inRedis[any](s.Redis > 0, 5, record.Bytes(s.Redis), "", "all", sum.Records, sum.Elements, record.Bytes(sum.Bytes), "",
		sum.Expiring, sum.Expired)...)
	t.Print(b)
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

func distributions(b *page.Text, s *stats.Result) {
	b.WriteString("\nSizes of records (bytes, elements; quantiles within 1.6 %)\n")
	t := newTable("db", "type", "p50", "p99", "max", "elements p50", "p99", "max", "key p50", "max")
	for _, c := range s.Types {
		t.Add(c.DB, c.Type, record.Bytes(c.Sizes.P50), record.Bytes(c.Sizes.P99), record.Bytes(c.Sizes.Max),
			c.Lengths.P50, c.Lengths.P99, c.Lengths.Max, c.KeySizes.P50, c.KeySizes.Max)
	}
	t.Print(b)
}

func expiryTable(b *page.Text, s *stats.Result) {
	b.WriteString("\nExpiry\n")
	t := newTable(inRedis(s.Redis > 0, 2, "in Redis", "", "records")...)
	for _, e := range s.Expiry {
		if e.Records > 0 {
			t.Add(inRedis[any](s.Redis > 0, 2, record.Bytes(e.Redis), e.Name, e.Records)...)
		}
	}
	t.Print(b)
}

func bigTable(b *page.Text, title string, keys []stats.BigKey, redis bool) {
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	t := newTable(inRedis(redis, 1, "in Redis", "bytes", "elements", "db", "type", "key")...)
	for _, k := range keys {
		t.Add(inRedis[any](redis, 1, record.Bytes(k.Redis), record.Bytes(k.Bytes), k.Elements, k.DB, k.Type,
			cell(record.Quote(k.Key)))...)
	}
	t.Print(b)
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

func garbageTable(b *page.Text, s *stats.Result) {
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
	t := newTable(append(head, "on disk", "to free")...)
	var freed int64
	for i := range s.Garbage {
		g := &s.Garbage[i]
		cells := []any{g.Keyspace, g.Entries, g.Live()}
		for _, c := range columns {
			cells = append(cells, c.count(g))
		}
		t.Add(append(cells, record.Bytes(g.Bytes), record.Bytes(g.Freed))...)
		freed += g.Freed
	}
	t.Print(b)
	fmt.Fprintf(b, "a conversion would free about %s\n", record.Bytes(freed))
}

func filesTable(b *page.Text, s *stats.Result) {
	f := &s.Files
	if len(f.Levels) == 0 && f.Logs.Files == 0 {
		return
	}
	b.WriteString("\nFiles\n")
	t := newTable("keyspace", "level", "files", "bytes", "entries", "tombstones", "codecs")
	for _, l := range f.Levels {
		entries := record.Number(l.Entries)
		if l.Unknown > 0 {
			entries = "unknown"
		}
		level := fmt.Sprint(l.Level)
		if l.Level < 0 { // an LMDB file has no levels
			level = ""
		}
		t.Add(string(l.Keyspace), level, l.Files, record.Bytes(l.Bytes), entries, l.Deletes, strings.Join(l.Codecs, "+"))
	}
	for _, l := range f.Blobs {
		t.Add(string(l.Keyspace), "blobs", l.Files, record.Bytes(l.Bytes), l.Entries, "", strings.Join(l.Codecs, "+"))
	}
	if f.Logs.Files > 0 {
		t.Add("logs", "", f.Logs.Files, record.Bytes(f.Logs.Bytes), "", "", "")
	}
	if f.Other.Files > 0 {
		t.Add("MANIFEST, CURRENT", "", f.Other.Files, record.Bytes(f.Other.Bytes), "", "", "")
	}
	n, bytes := f.Sum()
	t.Add("all", "", n, record.Bytes(bytes), "", "", "")
	t.Print(b)
	var blobs, garbage int64
	for _, l := range f.Blobs {
		blobs, garbage = blobs+l.Bytes, garbage+l.Garbage
	}
	if blobs > 0 {
		fmt.Fprintf(b, "%s of the %s in blob files belong to values that no row refers to\n", record.Bytes(garbage),
			record.Bytes(blobs))
	}
}

// FingerprintText prints a fingerprint as a table. tool is kvferry's version.
func FingerprintText(w io.Writer, tool string, f *inspect.FingerprintFile) error {
	t := newTable("database", "type", "records", "elements", "digest")
	for _, p := range f.Parts {
		t.Add(p.DB, p.Type, p.Records, p.Elements, p.Millis)
	}
	b := page.TextFor(w)
	t.Print(b)
	of := &inspect.Selected{Filters: f.Filters, Expired: f.Expired}
	fmt.Fprintf(b, "%s\n", strings.Join(aboutLines(tool, f.Now, of, "other records do not count"), "\n"))
	_, err := io.WriteString(w, b.String())
	return err
}
