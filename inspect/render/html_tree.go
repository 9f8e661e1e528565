package render

import (
	"fmt"
	"slices"
	"strings"

	"kvferry/record"
)

// prefixes adds the tree of prefixes as nested tables. The script draws a map of them: each row of a table with the class
// tree is a node, and the table in the row after it, if any, has its children.
func (h *htmlPage) prefixes() {
	root := h.stats.Prefixes
	if root == nil || root.Records == 0 {
		return
	}
	h.section("Where the bytes go: prefixes", func() {
		h.add("<div id=\"map\" hidden></div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Prefixes\">\n")
		h.prefixTable([]*jsonPrefix{root}, "all keys")
		h.add("</div>\n")
		text := "# replaces a number, a hexadecimal number, a UUID or a date, and * replaces names that are too many to list."
		if root.Disk > 0 {
			text += " On disk: the bytes of the files, divided among types by their logical bytes. Shares refer to these bytes."
		} else {
			text += " Shares are of logical bytes."
		}
		h.note(text)
	})
}

// prefixTable adds a table of prefixes, with a table of the children below each.
func (h *htmlPage) prefixTable(list []*jsonPrefix, name string) {
	disk, redis := h.stats.Prefixes.Disk > 0, h.stats.Redis > 0
	columns := inRedis(redis, 3, "in Redis", "prefix", "share", "bytes", "records", "elements", "types", "expiry", "largest key")
	if disk {
		columns = slices.Insert(columns, 2, "on disk")
	}
	h.add("<table class=\"tree\" aria-label=\"%s\">\n<thead><tr>", esc(name))
	for i, c := range columns {
		class := ""
		if i == 0 || i >= len(columns)-3 {
			class = " class=\"text\""
		}
		h.add("<th scope=\"col\"%s>%s</th>", class, c)
	}
	h.add("</tr></thead>\n<tbody>\n")
	for _, p := range list {
		h.prefix(p, disk, redis, len(columns))
	}
	h.add("</tbody>\n</table>\n")
}

func (h *htmlPage) prefix(p *jsonPrefix, disk, redis bool, columns int) {
	name := prefixName(p.Pattern, string(p.DB))
	if p == h.stats.Prefixes {
		name = "all keys"
	}
	largest := ""
	if p.Largest != nil {
		largest = fmt.Sprintf("%s (%s)", keyText(p.Largest.Key), record.Bytes(p.Largest.Bytes))
	}
	cells := inRedis(redis, 2, record.Bytes(p.Redis), fmt.Sprintf("%.1f %%", 100*p.Share), record.Bytes(p.Bytes),
		count(p.Records), count(p.Elements))
	weight := p.Bytes
	if disk {
		cells, weight = slices.Insert(cells, 1, record.Bytes(p.Disk)), p.Disk
	}
	h.add("<tr data-n=\"%d\"><th scope=\"row\" class=\"text key\" title=\"%s\"><span>%s</span>", weight, esc(name), esc(name))
	if len(p.First)+len(p.Last) > 0 {
		h.add("<small>%s</small>", esc(foldedText(p.First, p.Last)))
	}
	h.add("</th>")
	for _, c := range cells {
		h.add("<td>%s</td>", c)
	}
	h.add("<td class=\"text\">%s</td><td class=\"text\">%s</td><td class=\"text key\" title=\"%s\">%s</td></tr>\n",
		shares(typesText(p)), shares(expiryText(p)), esc(largest), esc(largest))
	if len(p.Children) == 0 {
		return
	}
	open := ""
	if p == h.stats.Prefixes {
		open = " open"
	}
	text := fmt.Sprintf("%s below %s", record.Number(len(p.Children)), name)
	if p.Unlisted > 0 {
		text = fmt.Sprintf("the largest %s of %s below %s", record.Number(len(p.Children)),
			record.Number(len(p.Children)+p.Unlisted), name)
	}
	h.add("<tr><td colspan=\"%d\" class=\"text below\"><details%s><summary>%s</summary>\n", columns, open, esc(text))
	h.prefixTable(p.Children, name)
	h.add("</details></td></tr>\n")
}

// typesText lists the types of a prefix with their shares of its bytes.
func typesText(p *jsonPrefix) string {
	var out []string
	for t := record.String; int(t) < record.NumTypes; t++ {
		if sum, ok := p.Types[t.String()]; ok {
			out = append(out, t.String()+" "+percent(sum.Bytes, p.Bytes))
		}
	}
	return strings.Join(out, ", ")
}

// expiryText lists the expiries of a prefix with their shares of its bytes. It omits shares that round to zero.
func expiryText(p *jsonPrefix) string {
	var out []string
	for _, e := range p.Expiry {
		if text := percent(e.Bytes, p.Bytes); text != percent(0, 1) {
			out = append(out, e.Name+" "+text)
		}
	}
	return strings.Join(out, ", ")
}

// shares formats a text with percentages: a number and its sign stay on one line.
func shares(s string) string { return strings.ReplaceAll(esc(s), " %", "&nbsp;%") }

// deletable adds a table of data that its owner may not need.
func (h *htmlPage) deletable() {
	if len(h.stats.Deletable) == 0 {
		return
	}
	var rows [][]Cell
	for i := range h.stats.Deletable {
		d := &h.stats.Deletable[i]
		rows = append(rows, []Cell{words(d.What), Number(d.Records), Size(d.Bytes), words(d.Command)})
	}
	h.section("What you may be able to delete", func() {
		h.table("What you may be able to delete",
			[]column{{"what", "text"}, {"records", ""}, {"bytes", ""}, {"command that shows it", "text key"}}, rows)
	})
}
