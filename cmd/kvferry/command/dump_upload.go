package command

import (
	"crypto/rand"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"kvferry/convert"
	convertpaths "kvferry/convert/paths"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
)

// uploadSteps are the steps of a dump into an object store.
var uploadSteps = []progress.Step{{Name: "read", Weight: 1}, {Name: "upload", Weight: 0.5}}

// uploading reports whether a flag names a directory in an object store that the command writes.
func uploading(cmd *cobra.Command, name, value string) bool {
	form := cmd.Flags().Lookup("format")
	return name == "output" && object.IsAddress(value) && form != nil && form.Value.String() == formatParquet
}

// uploadParquet writes a directory of Parquet files to the disk, for temporary files, and then to an object store.
func (a *App) uploadParquet(cmd *cobra.Command, f *dumpFlags, d *Dataset, notes *noted) (n int64, err error) {
	if err := f.upload.Check(cmd.Context(), ""); err != nil {
		return 0, err
	}
	temp, err := disk.MkdirTemp(f.read.source.TempDir(), "kvferry-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(temp)) }()
	local := *f
	local.output = filepath.Join(temp, "export")
	if n, err = a.dumpParquet(cmd, &local, d, notes); err != nil {
		return n, err
	}
	list, err := convertpaths.List(local.output)
	if err != nil {
		return n, err
	}
	files, total := convert.Objects(list)
	d.Scan.Meter.Begin("upload", total, 0, 0)
	u := &object.Upload{Run: rand.Text(), Rate: int64(f.rate), Workers: d.Scan.Workers, Sent: d.Scan.Meter.Add}
	if err = f.upload.Upload(cmd.Context(), u, local.output, files); err == nil {
		err = f.upload.Publish(cmd.Context(), u, files)
	}
	if err != nil {
		err = errors.Join(err, f.upload.Withdraw(cmd.Context(), u))
	}
	return n, err
}
