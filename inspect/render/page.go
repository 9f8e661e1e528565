package render

import (
	"io"
	"strings"
)

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
