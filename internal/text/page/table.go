package page

import (
	"slices"
	"strings"
)

const (
	gap         = 2 // characters between columns
	leastColumn = 8 // a column that is wrapped has at least this width
)

// Table lays out rows of cells, the first of which is the header. Cells are wrapped where the table is wider than
// width. A table of too many columns becomes a block of lines for each row.
func Table(rows [][]string, width int) (lines []string) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	widths := fit(naturalWidths(rows, columns), width-gap*(columns-1))
	if widths == nil {
		return blocks(rows, width)
	}
	for i, row := range rows {
		lines = append(lines, wrapRow(row, widths)...)
		if i == 0 {
			var rules []string
			for _, w := range widths {
				rules = append(rules, strings.Repeat("-", w))
			}
			lines = append(lines, strings.Join(rules, strings.Repeat(" ", gap)))
		}
	}
	return lines
}

func naturalWidths(rows [][]string, columns int) []int {
	out := make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			out[i] = max(out[i], Width(cell))
		}
	}
	return out
}

// fit narrows the widest columns until the sum is at most width. It returns nil if the columns would be too narrow.
func fit(widths []int, width int) []int {
	most, sum := 0, 0
	for _, w := range widths {
		most, sum = max(most, w), sum+w
	}
	for ; sum > width; most-- {
		if most < leastColumn {
			return nil
		}
		sum = 0
		for _, w := range widths {
			sum += min(w, most)
		}
		if sum <= width {
			break
		}
	}
	out := slices.Clone(widths)
	for i, w := range out {
		out[i] = min(w, most)
	}
	return spread(out, widths, width-sum)
}

// spread gives the characters that are left to the columns that were narrowed.
func spread(out, natural []int, left int) []int {
	for i := range out {
		more := min(max(left, 0), natural[i]-out[i])
		out[i] += more
		left -= more
	}
	return out
}

func wrapRow(row []string, widths []int) (lines []string) {
	cells := make([][]string, len(widths))
	height := 0
	for i, cell := range row {
		cells[i] = broken(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		for i, cell := range cells {
			text := ""
			if n < len(cell) {
				text = cell[n]
			}
			line.WriteString(text)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Width(text)+gap))
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// broken wraps a cell and breaks words that are wider than the column.
func broken(text string, width int) (lines []string) {
	for _, line := range Wrap(text, width) {
		for runes := []rune(line); ; runes = runes[width:] {
			if len(runes) <= width {
				lines = append(lines, string(runes))
				break
			}
			lines = append(lines, string(runes[:width]))
		}
	}
	return lines
}

// blocks prints each row as lines of header and cell.
func blocks(rows [][]string, width int) (lines []string) {
	head := rows[0]
	widest := 0
	for _, name := range head {
		widest = max(widest, Width(name))
	}
	for n, row := range rows[1:] {
		if n > 0 {
			lines = append(lines, "")
		}
		for i, cell := range row[:min(len(row), len(head))] {
			if cell != "" {
				lines = append(lines, wrapRow([]string{head[i], cell}, []int{widest, max(width-widest-gap, leastColumn)})...)
			}
		}
	}
	return lines
}
