// Package report prints the report of a conversion, and the runbook of a move.
package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/inspect/compare"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/internal/text/suggest"
	"kvferry/record"
	"kvferry/redis/live"
)

// Print prints the report of a conversion or dry run. only lists its filters. compare is a command line for
// comparing source and target, or "".
func Print(w io.Writer, r *convert.Report, only filter.Conditions, compare string) {
	verb := "converted"
	if r.DryRun {
		verb = "would convert"
	}
	fmt.Fprintf(w, "%s %s\n", verb, datasetText(&r.Source))
	fmt.Fprintf(w, "     into %s\n", datasetText(&r.Target))
	for _, n := range Renames(r) {
		fmt.Fprintf(w, "     database %s as %s\n", escape.Text(n.A), escape.Text(n.B))
	}
	printSelection(w, only)
	if r.Sampled {
		fmt.Fprintf(w, "\nOnly a sample of the source was read, and the counts below are for the sample.\n")
		if len(r.Unseen) > 0 {
			fmt.Fprintf(w, "The sample has no %s, but the source may: their losses are unknown.\n--dry-run without --sample reads everything.\n",
				suggest.Or(r.Unseen))
		}
	}
	printParts(w, r)
	if r.Sampled { // a sample does not have the rows of the source
		fmt.Fprintln(w)
	} else {
		printLedger(w, r.Ledger)
	}
	for i := range r.Losses {
		LossKind(w, &r.Losses[i])
		if r.Losses[i].Kind != record.LossDamaged { // the samples of its findings follow
			printSamples(w, r.Losses[i].Samples, r.Losses[i].Count)
		}
	}
	for i := range r.Findings {
		Finding(w, &r.Findings[i])
	}
	printEstimate(w, r)
	printProof(w, r)
	printTimings(w, r)
	printFollow(w, r.Follow)
	if compare != "" && !r.DryRun {
		fmt.Fprintf(w, "to compare source and copy: %s\n", compare)
	}
	if !r.DryRun {
		fmt.Fprintf(w, "report: %s\n", escape.Text(reportPath(r)))
	}
	if r.Earlier != "" {
		fmt.Fprintf(w, "the report of the earlier conversion is kept: %s\n", escape.Text(r.Earlier))
	}
}

// titleLines is the number of lines that name source and target.
const titleLines = 2

// WithTitle repeats the title of a report at its end if it would scroll off the screen.
func WithTitle(text *page.Text, columns, rows int) {
	lines := strings.SplitAfter(text.String(), "\n")
	shown := 1 // the prompt
	for _, line := range lines[:len(lines)-1] {
		shown += max(page.Width(line)-2, 0)/max(columns, 1) + 1
	}
	if rows > 0 && shown > rows {
		text.WriteString(strings.Join(lines[:titleLines], ""))
	}
}

// datasetText describes a dataset with its format and size.
func datasetText(d *convert.Dataset) string {
	text := escape.Text(d.Path) + " (" + formatOn(d.Format, d.Store)
	if d.Files > 0 && !live.IsAddress(d.Path) {
		text += ", " + record.Count(int64(d.Files), "file") + ", " + record.Bytes(d.Bytes)
	}
	return text + ")"
}

// reportPath returns the path of the report. For a server target it is in the working directory, so the path is
// absolute.
func reportPath(r *convert.Report) string {
	if path, err := filepath.Abs(r.File); err == nil && live.IsAddress(r.Target.Path) {
		return path
	}
	return r.File
}

// printFollow prints how to replicate from the old server, if possible.
func printFollow(w io.Writer, f *convert.Following) {
	if f == nil {
		return
	}
	for _, line := range f.Commands {
		fmt.Fprintf(w, "to replicate from the old server, starting where the dump ends: %s\n", line)
	}
	for _, condition := range f.Conditions {
		fmt.Fprintf(w, "  only if %s\n", condition)
	}
}

// printSelection prints the filters, if any.
func printSelection(w io.Writer, only filter.Conditions) {
	if words := only.All(); len(words) > 0 {
		fmt.Fprintf(w, "     only %s\n", escape.Shell(words))
	}
}

// printParts prints records and elements by database and type.
func printParts(w io.Writer, r *convert.Report) {
	fmt.Fprintln(w)
	t := &page.Columns{Labels: 2}
	t.Add("database", "type", "records", "elements")
	for _, p := range r.Parts {
		addPart(t, &p)
	}
	t.Add("all", "", r.Records(), r.Elements())
	if len(r.Skipped) > 0 {
		t.Add("skipped")
		for _, p := range r.Skipped {
			addPart(t, &p)
		}
		n, elements := r.SkippedRecords()
		t.Add("all", "", n, elements)
	}
	t.Print(w)
	if len(r.Skipped) > 0 {
		fmt.Fprintln(w, "skipped: their keys exist on the server and were left alone")
	}
}

func addPart(t *page.Columns, p *convert.PartDigest) { t.Add(p.DB, p.Type, p.Records, p.Elements) }

// printLedger prints source rows by outcome: one line per keyspace, one column per class that occurs.
func printLedger(w io.Writer, ledger []convert.Account) {
	var classes []string
	for c := range record.NumClasses {
		name := record.Class(c).String()
		if slices.ContainsFunc(ledger, func(a convert.Account) bool { return a.Classes[name] != 0 }) {
			classes = append(classes, name)
		}
	}
	fmt.Fprintln(w, "\nsource rows by outcome:")
	t := &page.Columns{Labels: 1}
	head := []any{"keyspace", "rows"}
	for _, c := range classes {
		head = append(head, c)
	}
	t.Add(head...)
	empty := 0
	for _, a := range ledger {
		if a.Rows == 0 {
			empty++
			continue
		}
		row := []any{a.Keyspace, a.Rows}
		for _, c := range classes {
			row = append(row, a.Classes[c])
		}
		t.Add(row...)
	}
	t.Print(w)
	if empty > 0 {
		fmt.Fprintf(w, "keyspaces without rows: %s\n", record.Number(int64(empty)))
	}
	printEntries(w, ledger)
}

// printEntries prints the physical entries of all keyspaces.
func printEntries(w io.Writer, ledger []convert.Account) {
	var sum convert.Entries
	for _, a := range ledger {
		sum.Read += a.Entries.Read
		sum.Visible += a.Entries.Visible
		sum.Superseded += a.Entries.Superseded
		sum.Tombstones += a.Entries.Tombstones
		sum.RangeDeleted += a.Entries.RangeDeleted
		sum.Folded += a.Entries.Folded
	}
	fmt.Fprintf(w, "%s read = %s", record.Count(sum.Read, "entry"), record.Count(sum.Visible, "row"))
	for _, part := range []struct {
		n    int64
		what string
	}{{sum.Superseded, "superseded"}, {sum.Tombstones, "tombstones"}, {sum.RangeDeleted, "range-deleted"}, {sum.Folded, "folded"}} {
		if part.n != 0 {
			fmt.Fprintf(w, " + %s %s", record.Number(part.n), part.what)
		}
	}
	fmt.Fprintln(w)
	bad := 0
	for _, a := range ledger {
		if a.Check != "ok" {
			fmt.Fprintf(w, "the ledger of %s does not add up: %s\n", escape.Text(string(a.Keyspace)), escape.Text(a.Check))
			bad++
		}
	}
	if bad == 0 {
		fmt.Fprintln(w, "the ledger adds up")
	}
	fmt.Fprintln(w)
}

// Loss prints one kind of loss with its samples.
func Loss(w io.Writer, l *convert.LossKind) {
	LossKind(w, l)
	printSamples(w, l.Samples, l.Count)
}

// LossKind prints the number of losses of one kind.
func LossKind(w io.Writer, l *convert.LossKind) {
	switch {
	case l.Note:
		fmt.Fprintf(w, "note %s: %s\n", l.Kind, record.Number(l.Count))
	case l.Kind == record.LossDamaged:
		fmt.Fprintf(w, "loss %s: %s in the source (%s)\n", l.Kind, record.Count(l.Count, "error"), allowedText(l))
	case l.Drops:
		fmt.Fprintf(w, "loss %s: %s left out (%s)\n", l.Kind, record.Number(l.Count), allowedText(l))
	default:
		fmt.Fprintf(w, "loss %s: %s changed (%s)\n", l.Kind, record.Number(l.Count), allowedText(l))
	}
}

func allowedText(l *convert.LossKind) string {
	if l.Allowed {
		return "allowed"
	}
	return "not allowed"
}

// Finding prints one kind of finding with its samples.
func Finding(w io.Writer, f *convert.FindingKind) {
	fmt.Fprintf(w, "%s %s: %s\n", f.Severity, f.Kind, record.Number(f.Count))
	printSamples(w, f.Samples, f.Count)
}

func printSamples(w io.Writer, samples []convert.Sample, count int64) {
	for _, s := range samples {
		fmt.Fprintf(w, "  %s\n", escape.Text(s.String()))
	}
	if more := count - int64(len(samples)); more > 0 {
		fmt.Fprintf(w, "  and %s more\n", record.Number(more))
	}
}

// printEstimate prints size, space and time of a conversion.
func printEstimate(w io.Writer, r *convert.Report) {
	e := r.Estimate
	if e == nil {
		return
	}
	from := "a trial conversion of the whole source"
	if e.SampleBytes < e.SourceBytes {
		from = fmt.Sprintf("a sample of %s, %.1f%% of the source", record.Bytes(e.SampleBytes),
			100*float64(e.SampleBytes)/float64(e.SourceBytes))
	}
	fmt.Fprintf(w, "estimated from %s:\n", from)
	fmt.Fprintf(w, "  size of the target: %s\n", record.Bytes(e.TargetBytes))
	fmt.Fprintf(w, "  temporary files: %s\n", record.Bytes(e.TempBytes))
	for i := range e.Volumes {
		fmt.Fprintf(w, "  space: %s\n", spaceText(&e.Volumes[i]))
	}
	fmt.Fprintf(w, "  time: %s on this machine with %s", cli.AboutText(e.Seconds), record.Count(int64(r.Workers), "worker"))
	fmt.Fprint(w, " (")
	if e.Prepare > 0 {
		fmt.Fprintf(w, "%s %s, ", r.Timings.Preparation, cli.AboutText(e.Prepare))
	}
	fmt.Fprintf(w, "convert %s, finish %s, proof %s)\n", cli.AboutText(e.Run), cli.AboutText(e.Finish), cli.AboutText(e.Prove))
}

// spaceText compares the space that a disk has with what is needed.
func spaceText(v *convert.Volume) string {
	free := record.Bytes(v.Free) + " free: enough"
	if v.Free < 0 {
		free = "free space unknown"
	} else if !v.Fits() {
		free = record.Bytes(v.Free) + " free: NOT ENOUGH"
	}
	return fmt.Sprintf("%s for %s in %s, %s", record.Bytes(v.Needed), v.Use(), escape.Text(v.Path), free)
}

func printProof(w io.Writer, r *convert.Report) {
	switch {
	case r.Proof.Done:
		parts := ""
		if r.Proof.Parts > 0 {
			parts = " in " + record.Count(int64(r.Proof.Parts), "part")
		}
		fmt.Fprintf(w, "proved: read back%s, and %s (expiry in %s)\n", parts, equalText(len(r.Parts)), r.Proof.Unit)
		if r.Proof.Cached != "" {
			fmt.Fprintf(w, "  maybe read from memory, not from the disk: %s\n", r.Proof.Cached)
		}
		for _, gone := range []struct {
			n    int64
			what string
		}{{r.Proof.Expired, "record"}, {r.Proof.ExpiredFields, "hash field"}} {
			if gone.n > 0 {
				fmt.Fprintf(w, "  %s expired meanwhile or were about to, and were not compared\n",
					record.Count(gone.n, gone.what))
			}
		}
	case r.DryRun:
		fmt.Fprintf(w, "dry run of %s into %s: no target was written\n", escape.Text(r.Source.Path), escape.Text(r.Target.Path))
	case r.Proof.Counted:
		fmt.Fprintf(w, "counted: %s\n", r.Proof.Why)
	default:
		fmt.Fprintf(w, "NOT PROVED: %s; the target was not compared with the source\n", r.Proof.Why)
	}
}

// equalText words the result for one fingerprint or several.
func equalText(parts int) string {
	if parts == 1 {
		return "the fingerprint is equal"
	}
	return fmt.Sprintf("all %d fingerprints are equal", parts)
}

func printTimings(w io.Writer, r *convert.Report) {
	t := r.Timings
	fmt.Fprintf(w, "time: %s", cli.SecondsText(t.Total))
	var parts []string
	for _, p := range []struct {
		name string
		took float64
	}{{t.Preparation, t.Prepare}, {runText(r), t.Run}, {"finish", t.Finish}, {"proof", t.Prove}} {
		if p.took > 0 {
			parts = append(parts, p.name+" "+cli.SecondsText(p.took))
		}
	}
	fmt.Fprintf(w, " (%s)", strings.Join(parts, ", "))
	if t.Total > 0 && !t.Resumed && !r.Sampled { // otherwise this run did not read all of the source
		fmt.Fprintf(w, "\n  %s and %s of source a second", record.Count(int64(float64(r.Elements())/t.Total+0.5), "element"),
			record.Bytes(int64(float64(r.Source.Bytes)/t.Total)))
	}
	if t.Resumed {
		fmt.Fprint(w, ", resumed")
	}
	fmt.Fprintln(w)
}

// runText names the main phase of a conversion or dry run.
func runText(r *convert.Report) string {
	if r.DryRun {
		return "read"
	}
	return "convert"
}

// formatOn names a format and its store. Files and servers have no store.
func formatOn(format, store string) string {
	if store == "" {
		return format
	}
	return format + " on " + store
}

// Renames lists the databases whose names differ in the target.
func Renames(r *convert.Report) (out compare.DBMap) {
	for i, db := range r.Source.DBs {
		if name := r.Target.DBs[i]; name != db {
			out = append(out, compare.DBNames{A: db, B: name})
		}
	}
	return out
}
