package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"kvferry/inspect/dump"
	"kvferry/inspect/redismem"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/parquet"
	"kvferry/record"
)

// formatParquet is the --format that writes a directory.
const formatParquet = parquet.Name

// formatArrow is the --format that writes a stream.
const formatArrow = "arrow"

// validateParquet checks the flags of --format parquet.
func (f *dumpFlags) validateParquet() error {
	switch {
	case toStandard(f.output):
		return usagef("--format parquet writes a directory: name a new one with -o")
	case f.raw || f.dead || f.limit > 0 || f.encode == "base64" || len(f.keyspaces) > 0:
		return usagef("--raw, --dead, --limit, --keyspace and --encode base64 do not go together with --format parquet")
	}
	if object.IsAddress(f.output) {
		return f.validateUpload()
	}
	f.output = filepath.Clean(f.output)
	if _, err := disk.Lstat(f.output); err == nil {
		return usagef("-o %s: it exists; --format parquet makes a new directory: name another", f.output)
	}
	return nil
}

// validateUpload checks the address of a directory in an object store.
func (f *dumpFlags) validateUpload() (err error) {
	if f.upload, err = object.NewTarget(f.output, true, f.read.source.objects.options); err != nil {
		return usagef("-o %w", err)
	}
	f.read.steps = uploadSteps
	return nil
}

// dumpParquet writes a directory of Parquet files, which appears when it is complete, and returns the number of records.
func (a *App) dumpParquet(cmd *cobra.Command, f *dumpFlags, d *Dataset, notes *noted) (n int64, err error) {
	var e *parquet.Export
	d.Scan.RedisStrings = true
	err = d.ordered(cmd.Context(), func() (err error) {
		var keys func() parquet.Estimator
		if f.keysOnly {
			keys = func() parquet.Estimator { return new(redismem.Meter) }
		}
		e, err = parquet.Create(f.output, parquet.ExportOptions{Keys: keys, Text: f.text, Creator: "kvferry version " + a.Build.String(),
			Source: d.Found.Format.Name(), Now: d.Scan.Now, Memory: d.Scan.Memory})
		if err != nil {
			return err
		}
		if n, err = dump.Export(cmd.Context(), d.Scan, e); err != nil {
			err = errors.Join(err, e.Abort())
		}
		return err
	})
	if err != nil {
		return n, err
	}
	if err = d.whole(nil); err == nil {
		err = e.Finish(notes.errs)
	}
	if err != nil {
		return n, errors.Join(err, e.Abort())
	}
	tellReplaced(cmd.ErrOrStderr(), e.Replaced())
	return n, nil
}

// tellReplaced prints how many values --text=lossy has changed.
func tellReplaced(w io.Writer, n int64) {
	if n > 0 {
		fmt.Fprintf(w, "kvferry: %s replaced: not UTF-8\n", record.Count(n, "value"))
	}
}
