package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/convert/work"
	"kvferry/inspect/dump"
	"kvferry/inspect/redismem"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/page"
	"kvferry/parquet"
	"kvferry/record"
)

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
	if err = d.checkUnchanged(nil); err == nil {
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
		Source: d.Found.Format.Name(), Home: d.Found.Format.Limits().DefaultDB, Now: d.Scan.Now, Memory: d.Scan.Memory}
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
	list, err := work.List(local.output)
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

// dumpInParts writes one part of a directory of Parquet files, or makes the directory of all parts.
func (a *App) dumpInParts(cmd *cobra.Command, f *dumpFlags, location string) (err error) {
	flag := "--part"
	if f.finish {
		flag = "--finish"
	}
	if err := divisible(cmd.Flags(), location, flag); err != nil {
		return err
	}
	f.read.source.shared = true
	show := cli.NewProgress(cmd, &f.read.progress, a.Terminal)
	defer func() { show.End(err) }()
	d, err := a.unopened(cmd, location, &f.read)
	if err != nil {
		return f.read.hint(err)
	}
	j := &parquetJob{a: a, f: f, d: d, show: show, notes: &noted{w: show, cmd: cmd, of: []string{location}}}
	run := &work.Export{Job: j, Source: work.ExportPlace{Path: d.Found.Location.Path, Format: d.Found.Format.Name()},
		WALDir: f.read.source.walDir,
		Target: work.ExportPlace{Path: f.output, Format: parquet.Name}, Tool: a.Build.Version, Options: f.partOptions(cmd),
		Now: d.Scan.Now}
	if f.finish {
		return j.finish(cmd, run)
	}
	rep, err := run.Part(cmd.Context(), f.part.Part)
	show.End(err)
	j.notes.sum()
	if err = j.close(err); err != nil {
		return f.read.hint(err)
	}
	return j.print(cmd, rep)
}

// partOptions are the flags that the files depend on. The row groups depend on the memory.
func (f *dumpFlags) partOptions(cmd *cobra.Command) map[string]string {
	out := map[string]string{"memory": f.read.source.memory.String()}
	for _, word := range cli.FlagWords(cmd.Flags(), append(processFlags, "memory", "now")...) {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if before, ok := out[name]; ok {
			value = before + "," + value
		}
		out[name] = value
	}
	return out
}

// parquetJob writes the parts of a directory of Parquet files.
type parquetJob struct {
	a     *App
	f     *dumpFlags
	d     *Dataset
	show  *cli.ProgressView
	notes *noted

	opened bool
	before int // errors that every part finds as it opens the source
	whole  writtenParts
}

// writtenPart describes the files of a part.
type writtenPart struct {
	*parquet.Files
	Records int64 `json:"records"`
	// Errors are those that the part has met, of them Before when it opened the source, as every part does.
	Errors int `json:"errors"`
	Before int `json:"errors_before"`
}

// writtenParts sums up all parts.
type writtenParts struct {
	records, replaced int64
	errors            int
}

// open opens the source, once.
func (j *parquetJob) open(ctx context.Context) error {
	if j.opened {
		return nil
	}
	preparing(j.show, j.f.read.readSteps(), j.d)
	if err := j.d.open(ctx, j.notes.report); err != nil {
		return err
	}
	j.opened, j.before = true, j.notes.errs
	j.d.Scan.RedisStrings = true
	watch(j.show, j.d.Scan, j.f.read.readSteps())
	return nil
}

// close closes the source, if it is open, after an error.
func (j *parquetJob) close(err error) error {
	if j.opened {
		err = errors.Join(err, j.d.Opened.Source.Close())
	}
	return err
}

// Plan cuts the source as one run does.
func (j *parquetJob) Plan(ctx context.Context) (tasks []pass.Task, err error) {
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	err = j.d.ordered(ctx, func() error {
		tasks, err = dump.Plan(j.d.Scan)
		return err
	})
	return tasks, err
}

// Write writes the files of some tasks.
func (j *parquetJob) Write(ctx context.Context, dir string, tasks []pass.Task) (any, error) {
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	var e *parquet.Export
	var n int64
	err := j.d.ordered(ctx, func() (err error) {
		if e != nil { // the tables were out of order
			err = errors.Join(e.Abort(), disk.Mkdir(dir))
		}
		e = parquet.In(dir, j.a.exportOptions(j.f, j.d))
		if err == nil {
			n, err = dump.ExportParts(ctx, j.d.Scan, tasks, e)
		}
		return err
	})
	if err = j.d.checkUnchanged(err); err != nil {
		return nil, err
	}
	return &writtenPart{e.Files(), n, j.notes.errs, j.before}, nil
}

// Assemble writes the manifest of all parts.
func (j *parquetJob) Assemble(_ context.Context, dir string, parts []json.RawMessage) error {
	var files []*parquet.Files
	for i, data := range parts {
		p, err := partOf(data)
		if err != nil {
			return err
		}
		j.whole.errors += p.Errors
		if i > 0 {
			j.whole.errors -= p.Before
		}
		files = append(files, p.Files)
	}
	e := parquet.In(dir, j.a.exportOptions(j.f, j.d))
	var err error
	j.whole.records, err = e.Assemble(files, j.whole.errors)
	j.whole.replaced = e.Replaced()
	return err
}

func partOf(data []byte) (*writtenPart, error) {
	p := &writtenPart{Files: new(parquet.Files)}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("not the report of a part: %w", err)
	}
	return p, nil
}

// finish makes the directory of all parts.
func (j *parquetJob) finish(cmd *cobra.Command, run *work.Export) error {
	rep, err := run.Finish(cmd.Context())
	j.show.End(err)
	if err != nil || rep.Already {
		return err
	}
	tellReplaced(cmd.ErrOrStderr(), j.whole.replaced)
	j.d.tellNone(cmd.ErrOrStderr(), j.whole.records)
	return verdict(j.whole.errors > 0)
}

// print prints the report of a part.
func (j *parquetJob) print(cmd *cobra.Command, rep *work.ExportReport) error {
	s := partState{part: pass.Part{K: rep.Part, N: rep.Parts}, already: rep.Already, finished: rep.Files == nil,
		missing: len(rep.Missing), tasks: rep.Tasks, all: rep.AllTasks}
	failed := false
	if rep.Files != nil {
		p, err := partOf(rep.Files)
		if err != nil {
			return err
		}
		s.content, failed = record.Count(p.Records, "record"), p.Errors > 0
	}
	return errors.Join(s.print(page.Painted(cmd.OutOrStdout()), nil), verdict(failed))
}
