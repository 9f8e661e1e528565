package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"kvferry/internal/text/escape"
	"kvferry/record"
)

// leastText is the least width of a last column that holds text.
const leastText = 20

// Columns is a table of right-aligned columns, whose numbers have their thousands separated.
type Columns struct {
	Labels int  // number of first columns that name a row
	Text   bool // the last column names a row: text, left-aligned
	rows   [][]string
}

// Add adds a row. Characters that control the display are escaped.
func (c *Columns) Add(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case int:
			texts[i] = record.Number(int64(v))
		case int64:
			texts[i] = record.Number(v)
		default:
			texts[i] = escape.Text(fmt.Sprint(v))
		}
	}
	c.rows = append(c.rows, texts)
}

// Print prints the table. On a narrower terminal, columns are closer and text is broken; if that is not
// enough, the table becomes several, each with the names of its rows.
func (c *Columns) Print(w io.Writer) {
	width := ColumnsOf(w)
	columns := 0
	for _, row := range c.rows {
		columns = max(columns, len(row))
	}
	natural := naturalWidths(c.rows, columns)
	gap, parts := gap, c.parts(natural, width, gap)
	if len(parts) > 1 {
		gap, parts = 1, c.parts(natural, width, 1)
	}
	for n, part := range parts {
		if n > 0 {
			fmt.Fprintln(w)
		}
		for _, row := range c.rows {
			c.print(w, row, part, natural, width, gap)
		}
	}
}

// parts distributes columns to tables of at most width characters; 0 is any width. gap is the space before a column.
func (c *Columns) parts(natural []int, width, gap int) [][]int {
	var labels, part []int
	var out [][]int
	fixed := 0
	for i, w := range natural {
		switch {
		case i < c.Labels:
			labels = append(labels, i)
			fixed += gap + w
		case c.Text && i == len(natural)-1:
			fixed += gap + min(w, leastText)
		}
	}
	used := fixed
	for i := c.Labels; i < len(natural); i++ {
		if c.Text && i == len(natural)-1 {
			break
		}
		if width > 0 && len(part) > 0 && used+gap+natural[i] > width {
			out, part, used = append(out, part), nil, fixed
		}
		part = append(part, i)
		used += gap + natural[i]
	}
	out = append(out, part)
	for i := range out {
		out[i] = append(append([]int(nil), labels...), out[i]...)
	}
	return out
}

// print prints the cells of a part, then the text.
func (c *Columns) print(w io.Writer, row []string, part, natural []int, width, gap int) {
	var line strings.Builder
	for _, i := range part {
		cell := ""
		if i < len(row) {
			cell = row[i]
		}
		line.WriteString(strings.Repeat(" ", gap+natural[i]-Width(cell)) + cell)
	}
	if !c.Text {
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
		return
	}
	line.WriteString(strings.Repeat(" ", gap))
	first, hang := line.String(), strings.Repeat(" ", Width(line.String()))
	text := row[len(row)-1]
	for _, piece := range cut(text, width-Width(first)) {
		fmt.Fprintln(w, strings.TrimRight(first+piece, " "))
		first = hang
	}
}

// cut breaks a text after width characters, with its indentation on every line. Less than 1 does not break it.
func cut(text string, width int) []string {
	rest := []rune(strings.TrimLeft(text, " "))
	indent := text[:len(text)-len(string(rest))]
	room := max(width-len(indent), leastText/2)
	if width < 1 {
		room = len(rest)
	}
	var out []string
	for ; len(rest) > room; rest = rest[room:] {
		out = append(out, indent+string(rest[:room]))
	}
	return append(out, indent+string(rest))
}

// ColumnsOf returns the width of the screen that w writes to; 0 if w is none.
func ColumnsOf(w io.Writer) int {
	if s, ok := w.(interface{ Columns() int }); ok {
		return s.Columns()
	}
	return 0
}

// Text collects a text for a screen.
type Text struct {
	bytes.Buffer
	columns int
}

// TextFor returns an empty text for the screen that w writes to.
func TextFor(w io.Writer) *Text { return &Text{columns: ColumnsOf(w)} }

// Columns returns the width of the screen.
func (t *Text) Columns() int { return t.columns }
