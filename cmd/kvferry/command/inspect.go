package command

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"kvferry/inspect"
	"kvferry/inspect/render"
)

const inspectHelp = `Count what is in a dataset, in one pass: records, elements and bytes by database and type, expiry,
distributions of sizes, the largest keys, prefixes, rows that are garbage with the bytes that a
conversion would free, and the shape of the files. The largest keys are exact, quantiles are
within 1.6 %.
` + exitHelp

const inspectExample = `  kvferry inspect /data/pika/dump
  kvferry inspect --top 50 --json /data/pika/dump
  kvferry inspect --html report.html /data/pika/dump`

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	read      ReadFlags
	top       int
	json      bool
	html      string
	delimiter string
	depth     int
	output    string
}

// inspect counts what is in a dataset.
func (a *App) inspect() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:     "inspect SRC",
		Short:   "Count what is in a dataset: sizes, expiry, big keys, garbage, files",
		Long:    inspectHelp,
		Example: inspectExample,
		Args:    exactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runInspect(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	fs := cmd.Flags()
	fs.IntVar(&f.top, "top", 20, "how many of the largest keys and prefixes are listed")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	fs.StringVar(&f.html, "html", "", "also write a page with charts to a `file`")
	fs.StringVar(&f.delimiter, "delimiter", ":", "what ends the prefix of a key; empty counts no prefixes")
	fs.IntVar(&f.depth, "prefix-depth", 1, "how many parts of a key make its prefix")
	fs.StringVarP(&f.output, "output", "o", "", outputUsage)
	return cmd
}

func (a *App) runInspect(cmd *cobra.Command, f *inspectFlags, location string) error {
	if f.top < 0 || f.depth < 1 {
		return usagef("--top %d, --prefix-depth %d: want at least 0 and 1", f.top, f.depth)
	}
	notes := &noted{w: cmd.ErrOrStderr()}
	d, err := a.dataset(cmd.Context(), cmd, location, &f.read, notes.report)
	if err != nil {
		return err
	}
	var stats *inspect.Stats
	err = d.ordered(cmd.Context(), func() (err error) {
		stats, err = inspect.Collect(cmd.Context(), &inspect.StatsOptions{Scan: *d.Scan, Stores: d.Stores, Top: f.top,
			Delimiter: f.delimiter, Depth: f.depth})
		return err
	}, never)
	notes.sum()
	if err = errors.Join(err, d.Opened.Source.Close()); err != nil {
		return err
	}
	if f.html != "" {
		if err := toOutput(cmd, f.html, func(w io.Writer) error { return render.HTML(w, location, stats) }); err != nil {
			return err
		}
	}
	print := render.Stats
	if f.json {
		print = render.StatsJSON
	}
	return toOutput(cmd, f.output, func(w io.Writer) error { return print(w, stats) })
}
