// Package page lays out Markdown and help texts for a terminal of a given width, and colours reports.
package page

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Width counts the characters of a text.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Wrap breaks a text into lines of at most width characters. A longer word gets a line of its own.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Render lays out a page: paragraphs, lists and definitions are wrapped at width, tables are fitted to it, and marks
// of headings, code and links are replaced by what a reader of plain text expects.
func Render(text string, width int) string {
	r := renderer{width: width}
	for line := range strings.Lines(text) {
		r.line(strings.TrimRight(line, " \n"))
	}
	r.flush()
	return r.out.String()
}

// renderer collects the lines of a block until the block ends.
type renderer struct {
	out   strings.Builder
	width int
	code  bool     // in a fenced block
	asIs  bool     // the last line was printed as it is: so are indented lines after it
	text  []string // of the paragraph, item or definition
	first string   // what its first line begins with
	hang  int      // the column of its other lines
	table [][]string
}

var (
	heading    = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
	item       = regexp.MustCompile(`^( *(?:[*-]|\d+\.) +)(.*)$`)
	definition = regexp.MustCompile(`^( +\S(?:.*?\S)? {2,})(\S.*)$`)
	inItem     = regexp.MustCompile("^ {1,3}[\\pL`]") // a paragraph of an item
	rule       = regexp.MustCompile(`^\|[-:| ]+\|$`)
)

func (r *renderer) line(line string) {
	switch {
	case strings.HasPrefix(strings.TrimSpace(line), "```"):
		r.flush()
		r.code = !r.code
	case r.code:
		r.codeLine("    " + line)
	case strings.HasPrefix(line, "<!--"):
	case strings.HasPrefix(line, "|"):
		r.row(line)
	case line == "":
		r.asIs = false
		r.flush()
		r.put("")
	default:
		r.prose(line)
	}
}

// prose adds a line of a paragraph, list or definition, or of a block that is printed as it is.
func (r *renderer) prose(line string) {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if r.asIs = r.asIs && indent > 0; r.asIs {
		r.codeLine(line)
		return
	}
	if h := heading.FindStringSubmatch(line); h != nil {
		r.flush()
		r.heading(len(h[1]), Inline(h[2]))
		return
	}
	if m := item.FindStringSubmatch(line); m != nil {
		r.begin(m[1], m[2])
		return
	}
	if len(r.text) > 0 && indent == r.hang {
		r.text = append(r.text, line)
		return
	}
	switch m := definition.FindStringSubmatch(line); {
	case m != nil:
		r.begin(m[1], m[2])
	case inItem.MatchString(line) && Width(line) > r.width:
		r.begin(line[:indent], line[indent:])
	case indent > 0:
		r.flush()
		r.asIs = true
		r.codeLine(line)
	default:
		r.begin("", line)
	}
}

// begin starts a block with its first line.
func (r *renderer) begin(first, text string) {
	r.flush()
	r.first, r.hang, r.text = first, Width(first), []string{text}
}

func (r *renderer) put(line string) { r.out.WriteString(strings.TrimRight(line, " ") + "\n") }

func (r *renderer) heading(level int, text string) {
	r.put(text)
	if level < 3 {
		r.put(strings.Repeat("=-"[level-1:level], Width(text)))
	}
}

// flush prints the block that was collected.
func (r *renderer) flush() {
	if len(r.table) > 0 {
		for _, line := range Table(r.table, r.width) {
			r.put(line)
		}
		r.table = nil
	}
	first := r.first
	for _, line := range wrapIf(r.text, r.width-r.hang) {
		r.put(first + line)
		first = strings.Repeat(" ", r.hang)
	}
	r.text, r.first, r.hang = nil, "", 0
}

func wrapIf(text []string, width int) []string {
	if len(text) == 0 {
		return nil
	}
	return Wrap(Inline(strings.Join(text, " ")), max(width, 10))
}

// row adds a row of a table.
func (r *renderer) row(line string) {
	if len(r.table) == 0 {
		r.flush()
	}
	if rule.MatchString(line) {
		return
	}
	const escaped = "\x00"
	line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, escaped)
	var cells []string
	for _, cell := range strings.Split(line, "|") {
		cells = append(cells, Inline(strings.ReplaceAll(strings.TrimSpace(cell), escaped, "|")))
	}
	r.table = append(r.table, cells)
}

var (
	link  = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	bold  = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	quote = regexp.MustCompile("`([^`]+)`")
)

// Inline removes the marks of bold text, code and links. A link to another site keeps its address.
func Inline(text string) string {
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		m := link.FindStringSubmatch(s)
		if strings.Contains(m[2], "://") && m[1] != m[2] {
			return m[1] + " (" + m[2] + ")"
		}
		return m[1]
	})
	return quote.ReplaceAllString(bold.ReplaceAllString(text, "$1"), "$1")
}
