package render

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"

	"kvferry/inspect/stats"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// pageFrame is the template of the page that HTML writes, with markers for title and content.
//
//go:embed page.html
var pageFrame string

// HTML writes a page about the content of a dataset. tool is kvferry's version. The page needs no network, no
// other file and no scripts; one script makes its tables sortable and draws the prefixes as a map.
func HTML(w io.Writer, tool string, s *stats.Result) error {
	h := &htmlPage{stats: newJSONStats(tool, s)}
	h.title(tool)
	h.tiles()
	h.types()
	h.prefixes()
	h.deletable()
	h.distributions()
	h.memory()
	h.states()
	h.keys()
	h.garbage()
	h.files()
	title := esc(s.Source + " – kvferry inspect " + tool)
	_, err := strings.NewReplacer("{{TITLE}}", title, "{{PAGE}}", h.b.String()).WriteString(w, pageFrame)
	return err
}

// htmlPage builds a page.
type htmlPage struct {
	b     strings.Builder
	stats *jsonStats
}

// esc escapes arbitrary text for HTML.
func esc(s string) string { return html.EscapeString(escape.Text(s)) }

func (h *htmlPage) add(format string, args ...any) { fmt.Fprintf(&h.b, format, args...) }

// section adds a section with a heading.
func (h *htmlPage) section(title string, body func()) {
	h.add("<section>\n<h2>%s</h2>\n", esc(title))
	body()
	h.add("</section>\n")
}

// pair adds sections side by side.
func (h *htmlPage) pair(sections func()) {
	h.add("<div class=\"two row\">\n")
	sections()
	h.add("</div>\n")
}

func (h *htmlPage) note(text string) { h.add("<p class=\"note\">%s</p>\n", shares(text)) }

// count formats a number with thousands separators.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// shade returns the CSS variable of the nth colour.
func shade(n int) string { return fmt.Sprintf("var(--c%d)", n%8) }

// amount is a coloured part of a bar.
type amount struct {
	value  int64
	colour int
	name   string
}

// line is one bar of a chart.
type line struct {
	name  string
	parts []amount
}

func (l *line) sum() (n int64) {
	for _, p := range l.parts {
		n += p.value
	}
	return n
}

// bars adds a chart of horizontal bars with an axis.
func (h *htmlPage) bars(title string, lines []line, show func(int64) string) {
	var most int64 = 1
	var said []string
	for _, l := range lines {
		most = max(most, l.sum())
		said = append(said, l.name+" "+show(l.sum()))
	}
	h.add("<div class=\"chart bars\" role=\"img\" aria-label=\"%s\">\n", esc(title+": "+strings.Join(said, ", ")))
	for _, l := range lines {
		h.add("<div class=\"bar\"><span class=\"name\">%s</span><span class=\"track\">", esc(l.name))
		for _, p := range l.parts {
			if p.value == 0 {
				continue
			}
			what := l.name
			if p.name != "" {
				what += ", " + p.name
			}
			h.add("<i style=\"width:max(1px,%.2f%%);background:%s\" title=\"%s\"></i>",
				100*float64(p.value)/float64(most), shade(p.colour), esc(what+": "+show(p.value)))
		}
		h.add("</span><span class=\"value\">%s</span></div>\n", show(l.sum()))
	}
	h.add("<div class=\"bar axis\"><span></span><span class=\"track\"><span>%s</span><span>%s</span></span><span></span></div>\n</div>\n",
		show(0), show(most))
}

// ticks is the number of columns of a histogram that have a label.
const ticks = 4

// leastColumns is the minimum number of columns of a histogram.
const leastColumns = 8

// histogram adds a chart by powers of two, with axes.
func (h *htmlPage) histogram(title string, powers []int64, unit func(int64) string, colour int) {
	first := 0
	for first < len(powers)-1 && powers[first] == 0 {
		first++
	}
	var most, records int64 = 1, 0
	for _, n := range powers {
		most, records = max(most, n), records+n
	}
	from := func(p int) int64 {
		if p == 0 {
			return 0
		}
		return 1 << min(p-1, 62)
	}
	last := max(len(powers)-1, first)
	for last-first < leastColumns-1 { // a single bar would fill the chart
		if first > 0 {
			first--
		}
		last++
	}
	h.add("<div>\n<h3>%s</h3>\n<div class=\"chart hist\" role=\"img\" aria-label=\"%s\">\n", esc(title),
		esc(fmt.Sprintf("%s: %s records from %s to %s", title, count(records), unit(from(first)), unit(1<<min(last, 62)-1))))
	h.add("<span class=\"y\"><span>%s</span><span>0</span></span><span class=\"cols\">", count(most))
	for p := first; p <= last; p++ {
		var n int64
		if p < len(powers) {
			n = powers[p]
		}
		h.add("<i style=\"height:max(%dpx,%.2f%%);background:%s\" title=\"%s\"></i>", min(n, 1), 100*float64(n)/float64(most),
			shade(colour), esc(fmt.Sprintf("%s to %s: %s records", unit(from(p)), unit(1<<min(p, 62)-1), count(n))))
	}
	h.add("</span>\n<span class=\"x\">")
	for i := range ticks { // the first values of columns
		h.add("<span>%s</span>", unit(from(first+i*(last-first+1)/ticks)))
	}
	h.add("</span>\n</div>\n</div>\n")
}

// column is a column of a table. Its kind selects how cells are shown and sorted.
type column struct {
	name string
	kind string // "", "text" or "text key"
}

// Cell is a cell of a table. Number is its sort key in numeric columns.
type Cell struct {
	Text   string
	Number int64
}

// Number returns the cell of a number.
func Number(n int64) Cell { return Cell{count(n), n} }

// Size returns the cell of a number of bytes.
func Size(n int64) Cell { return Cell{record.Bytes(n), n} }

func words(s string) Cell     { return Cell{Text: s} }
func keyCell(key []byte) Cell { return Cell{Text: keyText(key)} }

// table adds a table that scrolls if it is wider than the page.
func (h *htmlPage) table(title string, columns []column, rows [][]Cell) {
	h.add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n<thead><tr>", esc(title))
	for _, c := range columns {
		if left, _, _ := strings.Cut(c.kind, " "); left != "" {
			h.add("<th scope=\"col\" class=\"%s\">%s</th>", left, esc(c.name))
		} else {
			h.add("<th scope=\"col\">%s</th>", esc(c.name))
		}
	}
	h.add("</tr></thead>\n<tbody>\n")
	for _, row := range rows {
		h.add("<tr>")
		for i, c := range row {
			switch columns[i].kind {
			case "":
				h.add("<td data-n=\"%d\">%s</td>", c.Number, esc(c.Text))
			case "text key":
				h.add("<td class=\"text key\" title=\"%s\">%s</td>", esc(c.Text), esc(c.Text))
			default:
				h.add("<td class=\"%s\">%s</td>", columns[i].kind, esc(c.Text))
			}
		}
		h.add("</tr>\n")
	}
	h.add("</tbody>\n</table>\n</div>\n")
}

// Page writes a page with a title, a line below it, a table, and lines of text, as HTML does. Columns of numbers are
// between the second column and the last.
func Page(w io.Writer, title, sub string, heads []string, rows [][]Cell, lines []string) error {
	h := new(htmlPage)
	h.add("<h1>%s</h1>\n<p class=\"sub\">%s</p>\n<section>\n", esc(title), esc(sub))
	var columns []column
	for i, name := range heads {
		kind := ""
		if i < 2 || i == len(heads)-1 {
			kind = "text"
		}
		columns = append(columns, column{name, kind})
	}
	h.table(title, columns, rows)
	h.add("</section>\n")
	if len(lines) > 0 {
		h.add("<section><pre class=\"lines\">")
		for _, line := range lines {
			h.add("%s\n", esc(line))
		}
		h.add("</pre></section>\n")
	}
	_, err := strings.NewReplacer("{{TITLE}}", esc(title+" – kvferry"), "{{PAGE}}", h.b.String()).WriteString(w, pageFrame)
	return err
}
