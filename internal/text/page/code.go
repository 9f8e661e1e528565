package page

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	// remark is a line of code and the remark behind it.
	remark = regexp.MustCompile(`^( +)(\S.*?) +(# .*)$`)
	// column is a line of code whose text begins behind a gap: the rows of a listing.
	column = regexp.MustCompile(`^( +\S(?:.*?\S)? {2,})(\S.*)$`)
	// command is a line that a shell runs.
	command = regexp.MustCompile(`^ +(?:\w*[$>]|kvferry|redis-cli) `)
)

// codeLine prints a line of code. The remark of one that is too long goes above it, and a longer line is broken where
// that does not change what it means.
func (r *renderer) codeLine(line string) {
	if m := remark.FindStringSubmatch(line); m != nil && Width(line) > r.width {
		for _, text := range Wrap(m[3][2:], max(r.width-len(m[1])-2, 10)) {
			r.put(m[1] + "# " + text)
		}
		line = m[1] + m[2]
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	switch m := column.FindStringSubmatch(line); {
	case Width(line) <= r.width:
		r.put(line)
	case command.MatchString(line):
		r.fold(line, indent+"    ", ` \`)
	case m != nil:
		for _, text := range Wrap(m[2], max(r.width-Width(m[1]), 10)) {
			r.put(m[1] + text)
			m[1] = strings.Repeat(" ", Width(m[1]))
		}
	default:
		r.fold(line, indent+"  ", "")
	}
}

// fold breaks a line between words outside of quotes. Other lines begin with hang; all but the last end with mark.
func (r *renderer) fold(line, hang, mark string) {
	dense := strings.HasPrefix(strings.TrimSpace(line), "{") // JSON, perhaps without spaces
	for Width(line) > r.width {
		at := breakAt(line, dense, r.width-len(mark))
		if at == 0 {
			break
		}
		r.put(strings.TrimRight(line[:at], " ") + mark)
		line = hang + strings.TrimLeft(line[at:], " ")
	}
	r.put(line)
}

// breakAt returns where a line is best broken so that its beginning has at most width characters; 0 if nowhere. A flag
// stays beside its value. A dense line is broken behind commas, too.
func breakAt(line string, dense bool, width int) int {
	start := len(line) - len(strings.TrimLeft(line, " "))
	good, last := 0, 0
	var quote rune
	for i, c := range line {
		if Width(line[:i]) > width {
			return cmp.Or(good, last)
		}
		if i > start && quote == 0 && (c == ' ' || dense && line[i-1] == ',') {
			if line[strings.LastIndexByte(line[:i], ' ')+1] != '-' {
				good = i
			}
			last = i
		}
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	return cmp.Or(good, last)
}
