package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvferry/inspect/verify"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/paint"
	"kvferry/record"
)

// samples is the number of findings of a kind that the text shows.
const samples = 5

// Findings writes a verification as text: causes with what follows from them, other findings, counts, and a verdict.
func Findings(w io.Writer, r *Result) error {
	t := &findingsText{r: r, shown: make(map[string]int)}
	t.causes()
	t.others()
	for _, part := range r.Unread {
		fmt.Fprintf(&t.b, "not all records could be read: %s\n", escape.Text(part))
	}
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	t.totals()
	t.verdict()
	_, err := io.WriteString(paint.Report(w), t.b.String())
	return err
}

// findingsText collects the text of a verification.
type findingsText struct {
	b      strings.Builder
	r      *Result
	shown  map[string]int  // findings by kind
	stores map[string]bool // with a cause
}

// show prints a finding unless enough of its kind are shown.
func (t *findingsText) show(f *record.Finding) {
	if t.shown[f.Kind]++; t.shown[f.Kind] <= samples {
		t.b.WriteString(FindingLine(f) + "\n")
	}
}

// causes prints the findings that explain others, by store, each store with what follows.
func (t *findingsText) causes() {
	t.stores = make(map[string]bool)
	for i := range t.r.Findings {
		f := &t.r.Findings[i]
		store := verify.StoreOf(f)
		if !f.Causes() || t.stores[store] {
			continue
		}
		t.stores[store] = true
		for j := i; j < len(t.r.Findings); j++ {
			if g := &t.r.Findings[j]; g.Causes() && verify.StoreOf(g) == store {
				t.show(g)
			}
		}
		for k := range t.r.Groups {
			if g := &t.r.Groups[k]; g.Store == store {
				fmt.Fprintf(&t.b, "  follows: %s\n", t.consequence(g))
			}
		}
	}
}

// consequence sums up a group. A finding that is alone in its group is printed itself.
func (t *findingsText) consequence(g *verify.Group) string {
	for i := range t.r.Findings {
		if f := &t.r.Findings[i]; g.Count == 1 && verify.GroupOf(f) == g.GroupID {
			return FindingLine(f)
		}
	}
	return groupText(g)
}

// folded reports whether a group is shown with its cause.
func (t *findingsText) folded(store string) bool { return t.stores[store] }

// others prints the remaining findings, and how many of each kind are not shown.
func (t *findingsText) others() {
	for i := range t.r.Findings {
		f := &t.r.Findings[i]
		if !f.Causes() && !(f.Follows() && t.folded(verify.StoreOf(f))) {
			t.show(f)
		}
	}
	for _, c := range t.r.Counts {
		n := c.Count - t.foldedCount(c.Kind, c.Severity)
		more := n - int64(min(t.shown[c.Kind], samples))
		if t.shown[c.Kind] = max(t.shown[c.Kind]-int(n), 0); more > 0 {
			fmt.Fprintf(&t.b, "and %s more of %s %s (--format json lists them)\n", record.Number(more), c.Severity, c.Kind)
		}
	}
}

// foldedCount is the number of findings of a kind that are shown with their causes.
func (t *findingsText) foldedCount(kind string, s record.Severity) (n int64) {
	for i := range t.r.Groups {
		if g := &t.r.Groups[i]; g.Kind == kind && g.Severity == s && t.folded(g.Store) {
			n += g.Count
		}
	}
	return n
}

// groupText sums up a group in a line.
func groupText(g *verify.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", g.Severity, g.Kind)
	if g.DB != "" {
		fmt.Fprintf(&b, " db %s", g.DB)
	}
	if g.Missing == 0 || g.Short < g.Count { // several findings can be about one key
		fmt.Fprintf(&b, ": %s in %s", record.Number(g.Count), plural(g.Type, 0))
	}
	switch {
	case g.Missing == 0:
	case g.Short < g.Count:
		fmt.Fprintf(&b, ", of which %s lost %s", record.Number(g.Short), record.Count(g.Missing, "element"))
	default:
		fmt.Fprintf(&b, ": %s %s", record.Number(g.Count), plural(g.Type, g.Count))
	}
	switch {
	case g.Missing == 0 || g.Short < g.Count:
	case g.None == g.Count:
		fmt.Fprintf(&b, " lost all of %s", record.Count(g.Missing, "element"))
	case g.None > 0:
		fmt.Fprintf(&b, " lost %s; %s of them lost all", record.Count(g.Missing, "element"), record.Number(g.None))
	default:
		fmt.Fprintf(&b, " lost %s", record.Count(g.Missing, "element"))
	}
	if bytes.Equal(g.First, g.Last) {
		fmt.Fprintf(&b, ": key %s", record.Quote(g.First))
	} else {
		fmt.Fprintf(&b, ": keys %s … %s", record.Quote(g.First), record.Quote(g.Last))
	}
	return escape.Text(b.String())
}

// plural names records of a type.
func plural(t record.Type, n int64) string {
	name := t.String()
	switch {
	case t == 0:
		return "records"
	case n == 1:
		return name
	case t == record.Hash:
		return name + "es"
	}
	return name + "s"
}

// totals prints the counts by kind and of everything read.
func (t *findingsText) totals() {
	r := t.r
	for _, c := range r.Counts {
		fmt.Fprintf(&t.b, "%8s  %-7s  %s\n", record.Number(c.Count), c.Severity, c.Kind)
	}
	fmt.Fprintf(&t.b, "%s: %s, ", escape.Text(r.Source), record.Count(r.Records, "record"))
	if r.Expired > 0 {
		fmt.Fprintf(&t.b, "%s of them expired, ", record.Number(r.Expired))
	}
	t.b.WriteString(record.Count(r.Elements, "element"))
	if r.Entries > 0 {
		fmt.Fprintf(&t.b, ", %s in %s (%s)", record.Count(r.Entries, "entry"), record.Count(int64(r.Files), "file"), record.Bytes(r.Bytes))
	}
	fmt.Fprintf(&t.b, ": %s\n", Summary(r.Outcome))
}

// verdict ends the text of a dataset with errors or warnings: what is lost, how sure that is, and what to do.
func (t *findingsText) verdict() {
	r := t.r
	if r.Total(record.Warning) == 0 {
		return
	}
	sure := t.sure()
	partly := r.Skipped > 0 || len(r.Unread) > 0 || slices.ContainsFunc(r.Findings, func(f record.Finding) bool { return f.Causes() })
	t.b.WriteString("\n" + t.cause())
	fmt.Fprintf(&t.b, "lost: %s\n", t.lost(partly))
	switch {
	case sure != "":
		fmt.Fprintf(&t.b, "how sure: %s\n", escape.Text(sure))
	case partly:
		t.b.WriteString("how sure: at least that much; a key without any row outside the unreadable part leaves no trace\n")
	case r.Total(record.Error) > 0:
		t.b.WriteString("how sure: everything was read; what is wrong is listed above\n")
	default:
		t.b.WriteString("how sure: everything was read, and what readers see is complete\n")
	}
	switch {
	case r.Total(record.Error) == 0 || r.Rest == "" && len(r.Unread) == 0:
		t.b.WriteString("next: kvferry help findings\n")
	case len(r.Unread) > 0:
		t.b.WriteString("next: kvferry help findings, \"What cannot be passed over\"\n")
	default:
		fmt.Fprintf(&t.b, "next: %s\n", escape.Text(r.Rest))
	}
}

// cause names the first cause in one line, as the findings may have scrolled away; "" if no finding is a cause.
func (t *findingsText) cause() string {
	i := slices.IndexFunc(t.r.Findings, func(f record.Finding) bool { return f.Causes() })
	if i < 0 {
		return ""
	}
	f, more, n := &t.r.Findings[i], "", int64(0)
	for _, c := range t.r.Counts {
		if of := (record.Finding{Kind: c.Kind, Severity: c.Severity, Place: f.Place}); of.Causes() {
			n += c.Count
		}
	}
	if n > 1 {
		more = fmt.Sprintf(", and %s more", record.Number(n-1))
	}
	what, _, _ := strings.Cut(f.Detail, "; ")
	return escape.Text(fmt.Sprintf("cause: %s in %s: %s%s", f.Kind, f.Place.File, what, more)) + "\n"
}

// sure returns how sure the loss is that damage of a file names itself; "" if the counts tell.
func (t *findingsText) sure() string {
	if i := slices.IndexFunc(t.r.Findings, func(f record.Finding) bool { return f.Sure != "" }); i >= 0 {
		return t.r.Findings[i].Sure
	}
	return ""
}

// damagedFiles names the files of which parts were not read.
func (t *findingsText) damagedFiles() string {
	var files []string
	for i := range t.r.Findings {
		if f := &t.r.Findings[i]; f.Causes() && !slices.Contains(files, f.Place.File) {
			files = append(files, f.Place.File)
		}
	}
	switch n := len(files); n {
	case 0:
		return "the files that the errors name"
	case 1:
		return escape.Text(files[0])
	default:
		return escape.Text(files[0]) + " and " + record.Count(int64(n-1), "other file")
	}
}

// lost describes the loss, as far as counts show.
func (t *findingsText) lost(partly bool) string {
	r := t.r
	var keys, none, elements, orphans int64
	for i := range r.Groups {
		g := &r.Groups[i]
		keys, none, elements = keys+g.Short, none+g.None, elements+g.Missing
		if g.Orphans() && t.folded(g.Store) {
			orphans += g.Count
		}
	}
	var parts []string
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Lost != "" {
			parts = append(parts, escape.Text(f.Lost))
		}
	}
	if r.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("the rows of unreadable tables, blocks or pages (%s)", record.Number(r.Skipped)))
	}
	if orphans > 0 {
		percent := 100 * float64(orphans) / float64(orphans+r.Records)
		parts = append(parts, fmt.Sprintf("%s (%.2g %%) without their meta rows", record.Count(orphans, "key"), percent))
	}
	if elements > 0 {
		percent := 100 * float64(elements) / float64(elements+r.Elements)
		text := fmt.Sprintf("%s (%.2g %%)", record.Count(elements, "element"), percent)
		switch none {
		case keys:
			text += ", all of " + record.Count(keys, "key")
		case 0:
			text += " of " + record.Count(keys, "key")
		default:
			text += fmt.Sprintf(" of %s, %s of which lost all", record.Count(keys, "key"), record.Number(none))
		}
		parts = append(parts, text)
	}
	switch errors := r.Total(record.Error); {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case partly && !slices.ContainsFunc(r.Findings, func(f record.Finding) bool { return f.Causes() && !f.Listing() }):
		return "no rows of tables and logs; without the file that lists them, rows that were deleted may be back"
	case partly:
		return "what could not be read of " + t.damagedFiles()
	case errors > 0:
		verb := "say"
		if errors == 1 {
			verb = "says"
		}
		return fmt.Sprintf("no rows; %s %s what is inconsistent", record.Count(errors, "error"), verb)
	}
	return "nothing"
}

// Summary counts findings by severity, in words.
func Summary(v *verify.Outcome) string {
	errors := v.Total(record.Error)
	warnings := v.Total(record.Warning) - errors
	notes := v.Total(record.Note) - warnings - errors
	if errors+warnings+notes == 0 {
		return "sound"
	}
	var parts []string
	for _, p := range []struct {
		n    int64
		name string
	}{{errors, "error"}, {warnings, "warning"}, {notes, "note"}} {
		if p.n > 0 {
			parts = append(parts, record.Count(p.n, p.name))
		}
	}
	return strings.Join(parts, ", ")
}
