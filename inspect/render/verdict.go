package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvferry/inspect/verify"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
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
	if v := r.Verdict(); v != nil {
		fmt.Fprintf(&t.b, "\n%s\n", strings.Join(v.lines(), "\n"))
	}
	_, err := io.WriteString(page.Painted(w), t.b.String())
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
		t.shown[c.Kind] = max(t.shown[c.Kind]-int(n), 0)
		if more > 0 {
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
		fmt.Fprintf(&t.b, ", %s in %s (%s)", record.Count(r.Entries, "entry"), record.Count(int64(r.Files), "file"),
			record.Bytes(r.Bytes))
	}
	fmt.Fprintf(&t.b, ": %s\n", Summary(r.Outcome))
	for _, line := range aboutLines(r.Tool, r.NowMS, &r.Selected, "records and elements are counted after filtering, entries before; files cover the whole dataset") {
		t.b.WriteString(line + "\n")
	}
}

// Verdict sums up a dataset with errors or warnings: the loss, how sure it is, and the next command. The loss covers
// unread bytes and values and elements known to be missing. Warnings do not count: sound datasets have them.
type Verdict struct {
	Cause string `json:"cause,omitempty"` // the first finding that explains others
	Lost  string `json:"lost"`
	Sure  string `json:"how_sure"`
	Next  string `json:"next"` // command line
	// UnreadBytes is the part of DataBytes, the size of tables and logs, that could not be read, as far as it is known.
	UnreadBytes int64 `json:"unread_bytes"`
	DataBytes   int64 `json:"data_bytes"`
}

// Verdict returns the verdict. It is nil without errors and warnings.
func (r *Result) Verdict() *Verdict {
	if r.Total(record.Warning) == 0 {
		return nil
	}
	v := &Verdict{Cause: r.cause(), Lost: r.lost(), Sure: r.sure(), Next: r.Rest, DataBytes: r.Data}
	for _, c := range r.Counts {
		v.UnreadBytes += c.Unread
	}
	switch {
	case r.Total(record.Error) == 0 || r.Rest == "" && len(r.Unread) == 0:
		v.Next = "kvferry help findings"
	case len(r.Unread) > 0:
		v.Next = "kvferry help findings, \"What cannot be passed over\""
	}
	return v
}

// lines returns the lines of the verdict.
func (v *Verdict) lines() (out []string) {
	for _, line := range [][2]string{{"cause", v.Cause}, {"lost", v.Lost}, {"certainty", v.Sure}, {"next", v.Next}} {
		if line[1] != "" {
			out = append(out, line[0]+": "+escape.Text(line[1]))
		}
	}
	return out
}

// Line is the verdict in one line, for standard error.
func (r *Result) Line() string {
	parts := []string{r.Source + ": " + Summary(r.Outcome)}
	if v := r.Verdict(); v != nil {
		parts = append(parts, v.lines()...)
	}
	return escape.Text(strings.Join(parts, "; "))
}

// partly reports whether something of the dataset was not read.
func (r *Result) partly() bool {
	return r.Skipped > 0 || len(r.Unread) > 0 ||
		slices.ContainsFunc(r.Gravest, func(f record.Finding) bool { return f.Causes() && f.Loses() })
}

// listing reports whether a file that lists the files of a store is damaged or missing.
func (r *Result) listing() bool {
	return slices.ContainsFunc(r.Gravest, func(f record.Finding) bool { return f.Causes() && f.Listing() })
}

// cause names the first cause, as the findings may have scrolled away; "" if no finding is a cause.
func (r *Result) cause() string {
	i := slices.IndexFunc(r.Gravest, func(f record.Finding) bool { return f.Causes() || f.Lost != "" })
	if i < 0 {
		return ""
	}
	f, more, n := &r.Gravest[i], "", int64(0)
	for _, c := range r.Counts {
		if of := (record.Finding{Kind: c.Kind, Severity: c.Severity, Place: f.Place}); of.Causes() || c.Kind == f.Kind {
			n += c.Count
		}
	}
	if n > 1 {
		more = fmt.Sprintf(", and %s more", record.Number(n-1))
	}
	what, _, _ := strings.Cut(f.Detail, "; ")
	return fmt.Sprintf("%s in %s: %s%s", f.Kind, f.Place.File, what, more)
}

// sure describes how sure the loss is.
func (r *Result) sure() string {
	errors := r.Total(record.Error)
	i := slices.IndexFunc(r.Gravest, func(f record.Finding) bool {
		return f.Sure != "" && (f.Severity == record.Error || errors == 0)
	})
	if i >= 0 {
		return r.Gravest[i].Sure
	}
	switch {
	case r.partly():
		text := "a lower bound; a key whose rows are all in the unreadable part leaves no trace"
		if n := r.orphans(); n > 0 {
			text += fmt.Sprintf("; rows without a meta row, which may also remain from deleted keys: of %s", record.Count(n, "key"))
		}
		return text
	case slices.ContainsFunc(r.Gravest, func(f record.Finding) bool { return f.Loses() && f.Key == nil && f.Kind == "aof-command" }):
		return "a lower bound; a command that does not name its keys may have changed any key"
	case r.values() > 0:
		return "everything else was read"
	case r.listing():
		return "all tables and logs of the directory were read; a missing table leaves no trace"
	case errors > 0:
		return "everything was read; see the errors above"
	}
	return "everything was read, and the data that clients see is complete"
}

// orphans counts the keys that lack a meta row where something was not read.
func (r *Result) orphans() (n int64) {
	for i := range r.Groups {
		g := &r.Groups[i]
		if g.Orphans() && slices.ContainsFunc(r.Gravest, func(f record.Finding) bool {
			return f.Causes() && verify.StoreOf(&f) == g.Store
		}) {
			n += g.Count
		}
	}
	return n
}

// values counts the rows and values that could not be read, or not to their end.
func (r *Result) values() (n int64) {
	for _, c := range r.Counts {
		if c.Severity == record.Error && record.OfValue(c.Kind) {
			n += c.Count - c.Places
		}
	}
	return n
}

// unreadFiles names the files of which an unknown part was not read.
func (r *Result) unreadFiles() string {
	var files []string
	for i := range r.Gravest {
		if f := &r.Gravest[i]; f.Causes() && f.Loses() && f.Unread == 0 && f.Lost == "" && !slices.Contains(files, f.Place.File) {
			files = append(files, f.Place.File)
		}
	}
	switch n := len(files); n {
	case 0:
		return ""
	case 1:
		return files[0]
	default:
		return files[0] + " and " + record.Count(int64(n-1), "other file")
	}
}

// lost describes the loss, as far as it is known.
func (r *Result) lost() string {
	var parts []string
	var unread, places, said int64
	for i := range r.Gravest {
		if f := &r.Gravest[i]; f.Lost != "" {
			parts, said = append(parts, f.Lost), said+f.Unread
		}
	}
	for _, c := range r.Counts {
		unread, places = unread+c.Unread, places+c.Places
	}
	switch unread -= said; {
	case unread > 0 && unread == r.Data:
		parts = append(parts, "all rows: "+record.Bytes(unread)+" could not be read")
	case unread > 0:
		parts = append(parts, fmt.Sprintf("the rows in %s that could not be read, %s of the %s of tables and logs",
			record.Bytes(unread), record.Percent(unread, r.Data), record.Bytes(r.Data)))
	case r.Skipped > places:
		parts = append(parts, fmt.Sprintf("the rows of unreadable tables, blocks or pages (%s)", record.Number(r.Skipped)))
	}
	if n := r.values(); n > 0 {
		parts = append(parts, r.valuesText(n))
	}
	if text := r.elements(); text != "" {
		parts = append(parts, text)
	}
	if files := r.unreadFiles(); files != "" {
		parts = append(parts, "the unreadable parts of "+files)
	}
	switch errors := r.Total(record.Error); {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case len(r.Unread) > 0:
		return "unreadable data: " + strings.Join(r.Unread, ", ")
	case r.listing():
		return "no rows of tables and logs; but without the file that lists them, deleted rows may reappear"
	case errors > 0:
		return fmt.Sprintf("no rows; inconsistent data (%s)", record.Count(errors, "error"))
	}
	return "nothing"
}

// valuesText describes n rows and values that could not be read, by the kinds of their findings.
func (r *Result) valuesText(n int64) string {
	var kinds []string
	for _, c := range r.Counts {
		if left := c.Count - c.Places; c.Severity == record.Error && record.OfValue(c.Kind) && left > 0 {
			kinds = append(kinds, c.Kind+" "+record.Number(left))
		}
	}
	return fmt.Sprintf("rows and values not read, or not to their end: %s (%s)", record.Number(n), strings.Join(kinds, ", "))
}

// elements describes the elements that are known to be missing.
func (r *Result) elements() string {
	var keys, none, missing int64
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Severity == record.Error {
			keys, none, missing = keys+g.Short, none+g.None, missing+g.Missing
		}
	}
	if missing == 0 {
		return ""
	}
	text := fmt.Sprintf("%s (%s of %s)", record.Count(missing, "element"), record.Percent(missing, missing+r.Elements),
		record.Number(missing+r.Elements))
	switch none {
	case keys:
		return text + ", all of " + record.Count(keys, "key")
	case 0:
		return text + " of " + record.Count(keys, "key")
	}
	return fmt.Sprintf("%s of %s, %s of which lost all", text, record.Count(keys, "key"), record.Number(none))
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
