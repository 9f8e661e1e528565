package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"kvferry/convert/work"
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
	switch {
	case f.part.N > 0 && f.finish:
		return usagef("--part --finish: the directory is finished once all parts are there")
	case f.inParts() && f.read.salvage:
		return usagef("--salvage has no parts: what one part skips, another may read")
	case f.inParts():
		return nil // what exists may be the result of another process
	case work.FindParts(f.output).Exist():
		return usagef("%s: holds parts of this directory; go on with --part or --finish, or remove it", work.Path(f.output))
	}
	if _, err := disk.Lstat(f.output); err == nil {
		return usagef("-o %s: it exists; --format parquet makes a new directory: name another", f.output)
	}
	return nil
}

// validateUpload checks the address of a directory in an object store.
func (f *dumpFlags) validateUpload() (err error) {
	if f.inParts() {
		return usagef("-o %s: parts share a directory: name one on a file system that all of them see", f.output)
	}
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
		if e, err = parquet.Create(f.output, a.exportOptions(f, d)); err != nil {
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

// exportOptions describes the files of a directory.
func (a *App) exportOptions(f *dumpFlags, d *Dataset) parquet.ExportOptions {
	o := parquet.ExportOptions{Text: f.text, Compression: f.compress, Creator: "kvferry version " + a.Build.String(),
		Source: d.Found.Format.Name(), Now: d.Scan.Now, Memory: d.Scan.Memory}
	if f.keysOnly {
		o.Keys = func() parquet.Estimator { return new(redismem.Meter) }
	}
	return o
}

// tellReplaced prints how many values --text=lossy has changed.
func tellReplaced(w io.Writer, n int64) {
	if n > 0 {
		fmt.Fprintf(w, "kvferry: %s replaced: not UTF-8\n", record.Count(n, "value"))
	}
}
