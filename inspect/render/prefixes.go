package render

import (
	"cmp"
	"fmt"
	"slices"

	"kvferry/inspect/stats"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// maxTextPrefixes is the number of prefixes in a text, which are the largest.
const maxTextPrefixes = 30

func prefixTable(b *page.Text, s *stats.Result) {
	if s.Prefixes == nil || s.Prefixes.Sum().Records == 0 {
		return
	}
	b.WriteString("\nPrefixes (# is a number, * any name)\n")
	columns := inRedis(s.Redis > 0, 3, "in Redis", "share", "bytes", "records", "elements", "expiring", "type", "prefix")
	if s.Prefixes.Disk > 0 {
		columns = slices.Insert(columns, 1, "on disk")
	}
	t := newTable(columns...)
	prefixRows(t, s, s.Prefixes, "", "(all)")
	t.Print(b)
	if s.Prefixes.Disk > 0 {
		b.WriteString("on disk: the bytes of the files, divided among types by their logical bytes\n")
	}
}

func prefixRows(t *page.Columns, s *stats.Result, p *stats.Prefix, indent, name string) {
	sum, never := p.Sum(), p.Never()
	cells := inRedis[any](s.Redis > 0, 2, record.Bytes(sum.Redis), percent(weight(p), weight(s.Prefixes)),
		record.Bytes(sum.Bytes), sum.Records, sum.Elements,
		percent(sum.Records-never.Records, sum.Records), mainType(p), indent+name)
	if s.Prefixes.Disk > 0 {
		cells = slices.Insert[[]any, any](cells, 1, record.Bytes(p.Disk))
	}
	t.Add(cells...)
	for _, c := range p.Children {
		if c.Rank <= maxTextPrefixes && c.Sum().Records > 0 {
			name := prefixName(c.Pattern, c.DB)
			if c.Folded {
				name += " (" + foldedText(c.First, c.Last) + ")"
			}
			prefixRows(t, s, c, indent+"  ", name)
		}
	}
}

// mainType returns the type with the most bytes, and the number of others.
func mainType(p *stats.Prefix) string {
	most, n := record.String, -1
	for t := record.String; int(t) < record.NumTypes; t++ {
		if p.Types[t].Bytes > p.Types[most].Bytes {
			most = t
		}
		if p.Types[t].Records > 0 {
			n++
		}
	}
	if n > 0 {
		return fmt.Sprintf("%s+%d", most, n)
	}
	return most.String()
}

// weight returns the bytes on disk of a prefix, or its logical bytes if those are unknown. Shares are shares of them.
func weight(p *stats.Prefix) int64 { return cmp.Or(p.Disk, p.Sum().Bytes) }

func percent(part, whole int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(whole, 1)))
}

// prefixName shows a prefix of a database.
func prefixName(pattern []byte, db string) string {
	switch {
	case len(pattern) > 0:
		return keyText(pattern)
	case db != "":
		return "database " + db
	}
	return "(empty)"
}

// foldedText shows the range of keys below a *.
func foldedText(first, last []byte) string {
	return shortKey(first) + " to " + shortKey(last)
}

// maxShortKey is the number of bytes of a key in a line with others.
const maxShortKey = 32

func shortKey(key []byte) string {
	if len(key) > maxShortKey {
		return keyText(key[:maxShortKey]) + "…"
	}
	return keyText(key)
}

func deletableTable(b *page.Text, s *stats.Result) {
	if len(s.Deletable) == 0 {
		return
	}
	b.WriteString("\nWhat you may be able to delete\n")
	for i := range s.Deletable {
		d := &s.Deletable[i]
		bytes := record.Bytes(d.Bytes)
		if d.Bytes == 0 {
			bytes = ""
		}
		fmt.Fprintf(b, "%11s  %s\n%11s  %s\n", bytes, escape.Text(deletableText(d)), "", escape.Text(deletableLine(d)))
	}
}

// deletableText describes the data.
func deletableText(d *stats.Deletable) string {
	switch n := record.Count(d.Records, "record"); d.Why {
	case "expired":
		return n + " that expired"
	case "garbage":
		return record.Count(d.Records, "row") + " of deleted and changed records, which a conversion leaves out; the deleted records:"
	case "no-expiry":
		return fmt.Sprintf("%s without expiry of %s like %s", n, record.Number(d.Of), keyText(d.Pattern))
	default:
		return fmt.Sprintf("%s with the same value, like %s", n, keyText(d.Pattern))
	}
}

// deletableLine returns the command line that shows the data.
func deletableLine(d *stats.Deletable) string {
	return escape.Shell(d.Command)
}
