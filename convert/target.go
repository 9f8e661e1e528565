package convert

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// conflicts returns an error if the conversion would overwrite existing keys of a server.
func (a *attempt) conflicts() error {
	if l, ok := a.target.(format.Loaded); ok {
		return l.Conflicts()
	}
	return nil
}

// create starts the target in the work directory or connects to its server.
func (a *attempt) create(ctx context.Context, dbs []string) (format.Target, error) {
	layout := targetLayout(a.o, a.src, dbs)
	t, err := a.o.Target.Format.Create(ctx, a.location(), &format.CreateOptions{
		Create:    a.counter.Create(a.named),
		Kind:      a.o.Target.Store,
		Build:     store.BuildOptions{Sync: true, Now: a.o.Now, Identity: a.id.Name(), Spare: a.spare()},
		Layout:    layout,
		DBs:       a.withEmpty(dbs, layout),
		Version:   a.o.Version,
		Instances: a.o.Instances,
		Slots:     a.o.Slots,
		Cluster:   a.cluster() && !a.losesSlots(),
		Own:       a.o.Target.Format.Name() == a.o.Source.Format.Name(),
		SST:       a.o.SST,
		Memory:    a.o.Memory / 4,
		TempDir:   a.work.Spools(),
		Now:       a.o.Now,
		Earlier:   a.id.Target,
		Copied:    a.half(0),
		Reopen:    a.reopen(),
	})
	if err != nil && !a.o.onServer() { // its errors name the work directory, or nothing
		err = fmt.Errorf("target %s: %w", a.o.Target.Shown(), err)
	}
	return t, err
}

// cluster reports whether the target is a node of a cluster: on request, or because the source is one.
func (a *attempt) cluster() bool {
	return a.o.Cluster || a.o.Target.Format.Limits().Cluster && a.shape().Cluster
}

// shape returns the shape of the source, as known so far or when it was closed.
func (a *attempt) shape() format.Shape {
	if a.src != nil {
		a.known = format.ShapeOf(a.src)
	}
	return a.known
}

// losesSlots reports whether the options refuse the mode of the source.
func (a *attempt) losesSlots() bool { return a.cluster() && !a.o.Cluster && (a.o.NoCluster || a.o.SST) }

// maxEmpty limits the databases that empty ones are added below. Redis servers have 16, Pika servers fewer.
const maxEmpty = 16

// withEmpty adds empty databases below the highest one if servers have a directory for each number: a copy that lacks
// one looks unfinished. With --db only the chosen ones are created. If the source has such directories itself, its
// gaps are kept.
func (a *attempt) withEmpty(dbs []string, l format.Layout) []string {
	from, to := a.src.Format().Limits(), a.o.Target.Format.Limits()
	switch {
	case !to.Numbered || to.Place != format.InDirectory,
		l == format.LayoutFlat, l == format.LayoutAuto && slices.Equal(dbs, []string{"0"}),
		from.Place == format.InDirectory && a.src.Layout() == format.LayoutDB,
		len(a.o.Selection.DBs) > 0:
		return dbs
	}
	last := 0
	for _, db := range dbs {
		n, err := strconv.Atoi(db)
		if err != nil || n >= maxEmpty {
			return dbs
		}
		last = max(last, n)
	}
	out := slices.Clone(dbs)
	for n := range last {
		if db := strconv.Itoa(n); !slices.Contains(dbs, db) {
			out = append(out, db)
		}
	}
	return out
}

// named starts a store of the target. Its identity includes its directory, so that no two stores share one.
func (a *attempt) named(dir string, o store.BuildOptions) (store.Builder, error) {
	rel, err := filepath.Rel(a.work.Data(), dir)
	if err != nil {
		return nil, err
	}
	o.Identity += " " + filepath.ToSlash(rel)
	return a.o.Target.Create(dir, o)
}

// spare returns the function that lends idle cores; nil for a single worker.
func (a *attempt) spare() func(func()) bool {
	if a.o.Workers < 2 {
		return nil
	}
	return a.cores.Spare
}

// reread opens a target that an earlier process finished; nil if it need not be read.
func (a *attempt) reread(ctx context.Context) (format.Source, error) {
	if !a.o.readBack() {
		return nil, nil
	}
	o := a.reopen()
	if a.shared != nil {
		o.Scan, _ = disk.ReadFile(a.shared.Scan(a.made).Path) // without it, the file is scanned
	}
	return a.o.Target.Format.Open(ctx, a.location(), o)
}

// reopen returns the options for reading the target back; nil if it is not read back.
func (a *attempt) reopen() *format.OpenOptions {
	if !a.o.readBack() {
		return nil
	}
	return &format.OpenOptions{
		Store: a.opened.Opener(a.o.Target.Open),
		Kind:  a.o.Target.Store,
		Options: store.Options{Own: true, Now: a.o.Now, Memory: a.o.storeMemory(), TempDir: a.work.Spools(), Copied: a.half(1),
			Report: a.told.Report},

		MaxBitmap: a.o.MaxBitmap,
	}
}

// half returns the progress function of the first or second half of finishing a file: its parts are joined, then it is
// scanned. Other targets have one such step at most.
func (a *attempt) half(n int64) store.Copied {
	if !a.o.inFile() {
		return a.meter.Copied
	}
	return func(done, total, keys, of int64) { a.meter.Copied(n*total+done, 2*total, keys, of) }
}

// targetLayout returns the requested layout, else the layout that the target requires, else the source's. Databases
// that another format keeps in one directory get one each.
func targetLayout(o *Options, src format.Source, dbs []string) format.Layout {
	if o.Layout != format.LayoutAuto {
		return o.Layout
	}
	if l := o.Target.Format.Limits().Layout; l != format.LayoutAuto {
		return l
	}
	if len(dbs) > 1 && src.Layout() == format.LayoutFlat && o.Source.Format.Name() != o.Target.Format.Name() {
		return format.LayoutDB
	}
	return src.Layout()
}

// checkTasks checks that all tasks are done.
func (a *attempt) checkTasks(context.Context) error {
	return work.CheckTasks(a.id.Plan, a.results, a.target)
}

// keep keeps the tables of the tasks while they become a database.
func (a *attempt) keep(context.Context) error { return a.work.Keep() }

// finish completes the target from the tables of the tasks, and counts its files and tables.
func (a *attempt) finish(ctx context.Context) (err error) {
	if a.o.inFile() {
		a.meter.Doing("joins the parts")
	}
	if a.back, err = a.target.Finish(ctx); err != nil {
		return err
	}
	dir := ""
	if a.o.onDisk() {
		dir = a.work.Data()
		if err := copyExtra(a.src, a.o.Source.Path, dir); err != nil {
			return err
		}
	}
	a.made, err = a.counter.Take(dir)
	return err
}

// written lists the contents of the target.
func (a *attempt) written() work.Entry { return work.Entry{Written: a.made} }
