package command

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect/explain"
	"kvferry/inspect/render"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

const explainHelp = `Print the state of a key, and then its physical rows, of all types and versions: where each is, what its
bytes mean, whether it is alive, and why. The key is text, hex:… or base64:…. explain reads all rows and
prints up to --limit of them (text: 100, JSON: all).

--db and --type limit the search. The other filters select among keys and do not apply to a single one.
An append-only file has commands and no rows: kvferry dump --match shows the record of a key there.
If a table or block in the range of the key cannot be read, explain reports that rows may be missing.

The exit code is 0 if the key has rows, even if all are dead. It is 3 if the key does not have
rows, or after error findings: its rows contradict each other, or a table or block could not be read.`

const explainExample = `  kvferry explain /data/pika/dump user:1
  kvferry explain --type hash /data/pika/dump user:1
  kvferry explain --format json /data/pika/dump hex:00ff`

// explainFlags are the flags of explain.
type explainFlags struct {
	source SourceFlags
	places PlaceFlags
	format string
	limit  int64 // 0: the default of the format
	output string
}

// Rows of text are held in memory until the state of the key is known.
const (
	defaultRows = 100
	maxTextRows = 100_000
)

// explain prints all rows of a key.
func (a *App) explain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:     "explain SRC KEY",
		Short:   "Show every row of a key, decoded, alive or dead and why",
		Long:    explainHelp,
		Example: explainExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runExplain(cmd, &f, args[0], args[1]) },
	}
	f.source.Register(cmd, readMemory, systemTemp)
	fs := cmd.Flags()
	f.places.Register(fs)
	cli.Choose(fs, &f.format, "format", cli.Plain("text", "json"), "output format, also as -f NAME")
	fs.Var(cli.Number(&f.limit, 0, 0), "limit", "print at most `n` rows; 0 for the default (text: 100, JSON: all)")
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

func (a *App) runExplain(cmd *cobra.Command, f *explainFlags, location, name string) error {
	key, err := filter.ParseKey(name)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if f.format == "text" && f.limit > maxTextRows {
		return cli.Usagef("--limit %d: text output has at most %s rows; use --format json", f.limit, record.Number(maxTextRows))
	}
	read := &ReadFlags{source: f.source, choice: SelectFlags{places: f.places, expired: "keep"}, workers: 1}
	var files storeFindings
	read.salvage = true
	d, err := a.dataset(cmd, location, read, nil, files.report)
	if err != nil {
		return err
	}
	if err := d.hasRows(); err != nil {
		return errors.Join(err, d.Opened.Source.Close())
	}
	if _, err := d.Scan.Selection.SelectDBs(d.Databases()); err != nil {
		return errors.Join(err, d.Opened.Source.Close())
	}
	found := false // errors, or no rows at all
	err = cli.ToOutput(cmd, f.output, func(w io.Writer) error {
		var p interface {
			Row(*explain.Row) error
			Finish(*explain.Result) error
		}
		var x *explain.Result
		out := &counted{Writer: w}
		err := d.unlessWritten(cmd.Context(), func() (err error) {
			if f.format == "json" {
				p = render.NewExplainJSON(out, key, cmp.Or(f.limit, math.MaxInt64))
			} else {
				p = render.NewExplainText(out, key, cmp.Or(f.limit, defaultRows))
			}
			x, err = explain.Run(cmd.Context(), &explain.Options{Source: d.Opened.Source, Stores: d.Stores, Key: key,
				Where: &d.Scan.Selection.Filter, Now: d.Scan.Now, Memory: d.Scan.Memory, TempDir: d.Scan.TempDir, Tell: p.Row})
			return err
		}, func() bool { return out.n > 0 })
		if err = d.checkUnchanged(err); err != nil {
			return err
		}
		files.unread(x.States)
		x.Findings = append(x.Findings, files.list...)
		found = x.Rows == 0 || x.Errors > 0 ||
			slices.ContainsFunc(x.Findings, func(f record.Finding) bool { return f.Severity == record.Error })
		x.Unlisted = files.more
		return p.Finish(x)
	})
	err = errors.Join(err, d.Opened.Source.Close())
	if err == nil {
		err = verdict(found)
	}
	return err
}

// storeFindings collects findings about the files that may hold rows of the key: unreadable tables and blocks,
// damaged logs.
type storeFindings struct {
	mu   sync.Mutex
	list []record.Finding
	more int64 // number of findings beyond list
}

// maxFileFindings is the number of findings to list.
const maxFileFindings = 20

// unread corrects the state of a key if some rows could not be read: rows that were not found are then no proof that
// the key was deleted.
func (s *storeFindings) unread(states []explain.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range states {
		x := &states[i]
		missed := x.State == "gone" || x.State == "deleted" && x.Count != 0
		if missed && slices.ContainsFunc(s.list, func(f record.Finding) bool { return f.Skipped() }) {
			x.State, x.Detail = "unknown", "its other rows may be in unreadable tables or blocks"
		}
	}
}

func (s *storeFindings) report(f record.Finding) {
	if f.Severity == record.Note {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == maxFileFindings {
		s.more++
		return
	}
	s.list = append(s.list, f)
}

// counted counts the bytes written.
type counted struct {
	io.Writer
	n int64
}

// Write writes p and counts it.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}
