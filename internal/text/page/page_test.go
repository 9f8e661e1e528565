package page

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"paragraph", "one two\nthree four five six\n", "one two three four\nfive six\n"},
		{"heading", "# A `b`\n\n## C\n### D\n", "A b\n===\n\nC\n-\nD\n"},
		{"code", "```\na  b   c d e f g h i j k l m n\n```\n", "    a  b   c d e f g\n           h i j k l\n           m n\n"},
		{"remark", "```\na b   # c d e f g h i j k l m n\na # b\n```\n", "    # c d e f g h i\n    # j k l m n\n    a b\n    a # b\n"},
		{"command", "```\nkvferry a --b 'c d' e\n```\n", "    kvferry a \\\n        --b 'c d' e\n"},
		{"JSON", "    {\"a\":[1,2],\"b\":\"c, d\"}\n", "    {\"a\":[1,2],\n      \"b\":\"c, d\"}\n"},
		{"not shown", "<!-- a -->\nb\n", "b\n"},
		{"paragraph of an item", "1. a\n\n  one two three four five\n  six\n", "1. a\n\n  one two three four\n  five six\n"},
		{"list", "* one two three four\n  five\n1. six\n", "* one two three four\n  five\n1. six\n"},
		{"as it is", "text\n\n  {\"a\":\"b c d e f g h i j k l\"}\n", "text\n\n  {\"a\":\"b c d e f g h i j k l\"}\n"},
		{"list in what is as it is", "  a: b\n  c:\n    - d: 1\n      e: 2\n\nf\n", "  a: b\n  c:\n    - d: 1\n      e: 2\n\nf\n"},
		{"definitions", "  csv  one two three\n       four\n  x    y\n", "  csv  one two three\n       four\n  x    y\n"},
		{"marks", "**a** `b` [c](d.md) [e](http://f)\n", "a b c e (http://f)\n"},
		{"table", "| a | b |\n|---|---|\n| x\\|y | one two three four |\n", "a    b\n---  ---------------\nx|y  one two three\n     four\n"},
	} {
		if got := Render(c.in, 20); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestTableFits checks that no line of a table is wider than the screen, whatever its columns.
func TestTableFits(t *testing.T) {
	long := strings.Repeat("word ", 40) + strings.Repeat("x", 90)
	for columns := 1; columns < 30; columns++ {
		row := make([]string, columns)
		for i := range row {
			row[i] = long[:20+i*5]
		}
		for _, line := range Table([][]string{row[:], row}, 80) {
			if Width(line) > 80 && columns < 9 {
				t.Errorf("%d columns: %d characters: %s", columns, Width(line), line)
			}
		}
	}
	lines := Table([][]string{{"name", "a", "b", "c"}, {"first", "1", long, ""}, {"second", long, "2", "3"}}, 26)
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "name  first\n") || !strings.Contains(text, "\n\nname  second\n") {
		t.Errorf("a narrow screen has blocks:\n%s", text)
	}
}

// screen is a text for a screen of a width.
type screen struct {
	strings.Builder
	columns int
}

func (s *screen) Columns() int { return s.columns }

// TestColumns checks that a table fits the screen and has its thousands separated, and that nothing is cut off.
func TestColumns(t *testing.T) {
	named := &Columns{Text: true}
	named.Add("bytes", "key")
	named.Add(1234567, "  "+strings.Repeat("k", 30)+"\x1b")
	wide := &Columns{Labels: 1}
	wide.Add("keyspace", "entries", "live", "stale")
	wide.Add("hashes", int64(-12345), "1.0 KiB")
	for _, c := range []struct {
		table   *Columns
		columns int
		want    string
	}{
		{named, 0, "      bytes  key\n  1,234,567    " + strings.Repeat("k", 30) + "\\x1b\n"},
		{named, 36, "      bytes  key\n  1,234,567    " + strings.Repeat("k", 21) + "\n               " + strings.Repeat("k", 9) + "\\x1b\n"},
		{wide, 0, "  keyspace  entries     live  stale\n    hashes  -12,345  1.0 KiB\n"},
		{wide, 31, " keyspace entries    live stale\n   hashes -12,345 1.0 KiB\n"},
		{wide, 30, " keyspace entries    live\n   hashes -12,345 1.0 KiB\n\n keyspace stale\n   hashes\n"},
		{wide, 3, " keyspace entries\n   hashes -12,345\n\n keyspace    live\n   hashes 1.0 KiB\n\n keyspace stale\n   hashes\n"},
	} {
		s := &screen{columns: c.columns}
		c.table.Print(s)
		if s.String() != c.want {
			t.Errorf("%d columns: got\n%swant\n%s", c.columns, s.String(), c.want)
		}
		for line := range strings.Lines(s.String()) {
			if c.columns > 20 && Width(strings.TrimSuffix(line, "\n")) > c.columns {
				t.Errorf("%d columns: %q", c.columns, line)
			}
		}
	}
}
