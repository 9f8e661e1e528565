package report

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect/render"
	"kvferry/inspect/verify"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"kvferry/redis/live"
)

// Runbook is the plan of a move, with the results of a dry run and a verification.
type Runbook struct {
	Source, Goal string
	Words        []string // of the conversion
	Rename       bool     // --on-conflict rename
	Report       *convert.Report
	Loss         *convert.LossError // nil if the conversion is not refused
	Checked      *verify.Outcome
	From         *catalog.Found
	Target       format.Format
	Compare      []string // the words that compare source and target
	Verify       string   // the command line that verifies the source

	b strings.Builder
}

// Markdown returns the runbook.
func (b *Runbook) Markdown() string {
	fmt.Fprintf(&b.b, "# Move %s to %s\n\n", escape.Text(object.Shown(b.Source)), escape.Text(b.Goal))
	fmt.Fprintf(&b.b, "%s. These are the figures of %s.\n\n", b.verdict(), b.Report.Now.UTC().Format("2006-01-02 15:04 MST"))
	b.figures()
	b.before()
	b.conversion()
	b.changes()
	b.checks()
	b.start()
	b.rest()
	return b.b.String()
}

func (b *Runbook) line(format string, args ...any) { fmt.Fprintf(&b.b, format+"\n", args...) }

// item adds an item of a list. It is wrapped like the pages of docs.
func (b *Runbook) item(format string, args ...any) { b.line("* "+format, args...) }

// verdict sums up the effects of the move on the data.
func (b *Runbook) verdict() string {
	about := ""
	if b.Report.Sampled {
		about = " in the sample that was read"
	}
	switch kinds := b.lost(); {
	case len(kinds) > 0:
		return fmt.Sprintf("The target cannot hold everything%s: step 2 allows %s", about, strings.Join(kinds, ", "))
	case b.Renamed():
		return "Nothing is lost" + about + ", but some keys get new names"
	}
	return "Nothing is lost" + about
}

// lost returns the kinds of losses that renaming keys does not avoid.
func (b *Runbook) lost() (kinds []string) {
	for _, l := range b.Report.Losses {
		if !l.Note && (l.Kind != record.LossSameName || l.Drops && !b.Rename) {
			kinds = append(kinds, l.Kind)
		}
	}
	return kinds
}

// Renamed reports whether keys get new names.
func (b *Runbook) Renamed() bool {
	return b.Rename && slices.ContainsFunc(b.Report.Losses, func(l convert.LossKind) bool {
		return l.Kind == record.LossSameName
	})
}

// figures lists sizes, time and space.
func (b *Runbook) figures() {
	r, e := b.Report, b.Report.Estimate
	b.item("Source: %s, %s", datasetText(&r.Source), render.Summary(b.Checked))
	if !r.Sampled {
		b.item("Converted: %s with %s", record.Count(r.Records(), "record"), record.Count(r.Elements(), "element"))
	}
	if e != nil {
		b.item("Target: about %s, written in %s with %s", record.Bytes(e.TargetBytes), cli.AboutText(e.Seconds),
			record.Count(int64(r.Workers), "worker"))
		for i := range e.Volumes {
			b.item("Space: %s", spaceText(&e.Volumes[i]))
		}
	}
	b.line("")
}

// before is what to do before the conversion.
func (b *Runbook) before() {
	b.line("## 1. Before\n")
	b.line("The runbook holds for the source as it is now. If it is a database that a server still writes, take its newest dump when you " +
		"move and run `kvferry plan` again.")
	if b.Checked.Total(record.Warning) > 0 {
		b.line("\nThe source is not sound (%s). Read the findings, and decide whether it is the right copy:",
			render.Summary(b.Checked))
		b.line("\n    %s\n", b.Verify)
	}
	parent := filepath.Dir(filepath.Clean(b.Report.Target.Path))
	if _, err := disk.Stat(parent); errors.Is(err, fs.ErrNotExist) && !b.toServer() && !b.uploads() {
		b.line("\nThe directory of the target does not exist yet:\n\n    %s", escape.Shell([]string{"mkdir", "-p", parent}))
	}
	b.line("")
}

func (b *Runbook) toServer() bool { return live.IsAddress(b.Report.Target.Path) }

func (b *Runbook) uploads() bool { return object.IsAddress(b.Report.Target.Path) }

// conversion is the command of the conversion and what happens if it is stopped.
func (b *Runbook) conversion() {
	b.line("## 2. Convert\n")
	b.line("    %s\n", cli.CommandLine(b.Words))
	if b.toServer() {
		b.line("kvferry writes the server in place; `--resume` continues a run that was stopped.\n")
		return
	}
	appears := "renames it into place"
	if b.uploads() {
		appears = "uploads it"
	}
	b.line("kvferry reads the target back, compares it with the source and %s. The source is not written. If the run is "+
		"stopped, the same line with `--resume` continues it.\n", appears)
}

// changes lists the differences of the target.
func (b *Runbook) changes() {
	for _, n := range Renames(b.Report) {
		b.item("Database `%s` becomes `%s`.", escape.Text(n.A), escape.Text(n.B))
	}
	if b.Renamed() {
		b.item("Names under several types: the first type keeps the name, all other types get `name:type`.")
	}
	for i := range b.Report.Losses {
		l := &b.Report.Losses[i]
		what := "changed"
		if l.Drops {
			what = "left out"
		}
		if l.Note {
			what = "noted"
		}
		b.item("`%s`: %s %s, such as %s", l.Kind, record.Number(l.Count), what, sampleText(l.Samples))
		if l.Avoid != "" && !l.Note {
			b.item("`%s` can be avoided: %s", l.Kind, l.Avoid)
		}
	}
	b.line("")
}

func sampleText(samples []convert.Sample) string {
	if len(samples) == 0 {
		return "the findings of `kvferry verify`"
	}
	return escape.Text(samples[0].String())
}

// checks compares source and target.
func (b *Runbook) checks() {
	b.line("## 3. Check\n")
	b.line("Before the server changes the data:\n")
	if !b.toServer() {
		b.line("    %s", cli.CommandLine([]string{"verify", b.Goal}))
	}
	b.line("    %s\n", cli.CommandLine(b.Compare))
	if b.Renamed() || len(b.lost()) > 0 {
		b.line("`diff` explains renames and losses by the report next to the target: all remaining differences are faults.\n")
	}
}

// start lists the settings of the new server.
func (b *Runbook) start() {
	if b.toServer() {
		return
	}
	b.line("## 4. Start the new server\n")
	path, names, most := b.Report.Target.Path, b.Report.Target.DBs, 0
	if b.uploads() {
		from := path
		path = "/data/" + filepath.Base(path)
		b.item("Copy the target to the disk of the server: %s.", "`"+escape.Shell(b.download(from, path))+"`")
	}
	for _, name := range names {
		n, _ := strconv.Atoi(name)
		most = max(most, n+1)
	}
	limits := b.Target.Limits()
	known := strings.NewReplacer("{path}", path, "{dir}", filepath.Dir(path), "{file}", filepath.Base(path), "{databases}",
		strconv.Itoa(most), "{instances}", b.option("instances"), "{slots}", b.option("slots"))
	for _, text := range limits.Start {
		b.item("%s", known.Replace(text))
	}
	if b.Report.Cluster {
		b.item("Set `cluster-enabled` to `yes`.")
	}
	for _, name := range names {
		if limits.StartDB != "" && name != limits.DefaultDB {
			b.item("%s", strings.ReplaceAll(limits.StartDB, "{db}", escape.Text(name)))
		}
	}
	b.item("Give the files to the user of the server (`chown -R`).")
	b.line("")
}

// download is the command that copies an upload to a path, without what kvferry added to it.
func (b *Runbook) download(from, path string) []string {
	if b.Target.Limits().Place == format.InFile {
		return []string{"aws", "s3", "cp", from, path}
	}
	return []string{"aws", "s3", "sync", "--exclude", object.ManifestName, from, path}
}

// option returns an option of the conversion as its report has it.
func (b *Runbook) option(name string) string { return b.Report.Options[name] }

// rest is how to catch up and how to go back.
func (b *Runbook) rest() {
	n := 5
	if b.toServer() {
		n = 4
	}
	b.line("## %d. Catch up\n", n)
	if f := b.Report.Follow; f != nil {
		b.line("The new server can replicate from the old one, starting where the dump ends:\n")
		for _, line := range f.Commands {
			b.line("    %s", line)
		}
		b.line("")
		for _, c := range f.Conditions {
			b.item("only if %s", c)
		}
	} else {
		b.line("Writes to the old server after the dump are not in the target. Stop writes before the dump, or write to both servers " +
			"from then on.")
	}
	b.line("\n## %d. Go back\n", n+1)
	text := "The source is unchanged. Until the new server has received writes, start the old one on it again."
	if limits := b.From.Format.Limits(); limits.NoTarget == "" && limits.Place != format.OnServer && !b.toServer() {
		text += " Afterwards convert back"
		if !b.From.OnDisk() { // no target
			text += " to the disk and upload the result"
		}
		flags, target := b.From.Like(b.Report.Shape, format.LayoutAuto, ".back")
		if back := b.Report.Back; back != nil {
			if kinds := back.Kinds(); len(kinds) > 0 {
				flags = append(flags, "--allow-loss", strings.Join(kinds, ","))
				text += ", without data of the old server that kvferry does not write (`" + strings.Join(kinds, "`, `") + "`)"
			}
			for _, pair := range back.RenameDB {
				flags = append(flags, "--rename-db", pair)
			}
		}
		text += "; data that only the new server can hold is then a loss:\n\n    " +
			cli.CommandLine(slices.Concat([]string{"convert", "--dry-run"}, flags, []string{b.Goal, target}))
	}
	b.line("%s", text)
}
