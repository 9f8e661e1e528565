package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/fleet"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

const convertHelp = `Convert a dataset to another format, or rewrite it in its own.

kvferry never writes to the source. It builds the target next to its final location, reads it back,
compares it with the source by fingerprint and renames it into place. The path of the target exists
only when the target is complete. kvferry never overwrites an existing target. The report is written to
DST.kvferry-report.json; a report of an earlier conversion is kept with a number in its name.

Filters select records as in kvferry dump, by their size in the source. The ledger counts all other records
as filtered. --sample makes a small copy to try things on.

If the target does not accept the name of a database, the database gets a number. The summary lists
these names and prints the kvferry diff command that compares source and target.

Data that the target cannot hold is a loss. kvferry lists the losses and refuses the conversion unless
--allow-loss names their kinds. Errors in the source, such as unreadable tables and blocks, are losses
of the kind damaged. With --allow-loss damaged everything else is converted. See kvferry help findings.

--dry-run reads the source and lists what would be written and lost. It also converts a sample, in the
directory for temporary files, and estimates the size of the target, the space and the time from it.
The space is the peak usage: an RDB file takes twice its size until its parts are joined. --estimate
reads and counts only the sample; the summary lists the types without a record in the sample. The
sample, and therefore the estimated size, is the same with both. --estimate takes seconds for databases
of any size, except that an append-only file is still replayed, a server copied and an RDB file scanned
as a whole. --dry-run --sample 100 reads about a hundredth of the source, but no less than 4 MiB. A
conversion that does not fit on its disks is refused before it starts, unless --force-space is given. A
dry run only reports it, in JSON as estimate.fits.

The target can be a Redis or Valkey server: redis://host:port/db, rediss:// (TLS), unix:///path or
redis+cluster:// (cluster). kvferry writes it in place, looks for losses before the first write, and
compares key counts at the end; with --verify it reads the server back. The report goes to the working
directory. The source can also be a server. See kvferry help live.

The target can be in an object store: rdb:s3://bucket/file or FORMAT:s3://bucket/directory. kvferry
builds and proves it in the working directory, where the report stays, and then uploads it with a copy
of the report. See kvferry help object-stores.

If a run is killed, is cancelled (Ctrl-C, SIGTERM, SIGHUP) or runs out of disk space, kvferry keeps
completed work in DST.kvferry and prints the command line with --resume that continues it. --discard
drops that work and starts over; if this run is cancelled, its work is removed. Any other failure
removes all work, unless --resume was given.

--part 3/16 converts one part of 16 into DST.kvferry, which all machines share; --finish assembles the
target from the parts. To divide the proof as well, run --assemble and --prove 1/8 to 8/8 before --finish.
See kvferry help parts.

Exit codes: 0 done; 4 refused, because data would be lost; 5 parts are missing for --finish or
--assemble, or --prove ran before --assemble; 1 failed.
After a failure no target exists, unless the error reports that the target is complete.`

const convertExample = `  kvferry convert /data/pika/dump blackwidow:/data/new
  kvferry convert --dry-run /data/pika/dump blackwidow:/data/new
  kvferry convert --estimate /data/pika/dump blackwidow:/data/new
  kvferry convert --type hash --match 'user:*' nemo:/data/old nemo:/data/users
  kvferry convert --skip-existing aof:/data/redis redis://127.0.0.1:6379
  kvferry convert --instances 8 /data/pika4 pika4:/data/eight
  kvferry convert --min-bytes 1MiB /data/pika/dump blackwidow:/data/large
  kvferry convert --part 1/8 /data/pika/dump blackwidow:/data/parts
  kvferry convert -f job.yaml --workers 4 /data/pika/dump blackwidow:/data/new`

// convertFlags are the flags of convert.
type convertFlags struct {
	source    SourceFlags
	choice    SelectFlags
	workers   int
	layout    format.Layout
	allowLoss []string
	conflict  conflictFlag
	version   int32
	namespace string
	renameDB  []string
	cluster   bool
	sst       bool
	instances int
	slots     int
	rdb       string
	dryRun    bool
	estimate  bool
	tried     cli.SizeFlag
	force     bool
	resume    bool
	discard   bool
	part      partFlag
	finish    bool
	assemble  bool
	prove     partFlag
	proofs    int
	noProve   bool
	// failureReport asks for a report of a failure beside the target.
	failureReport bool
	progress      cli.ProgressFlags
	format        string
	server        serverFlags
}

// convert converts a dataset to another format.
func (a *App) convert() *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:     "convert SRC FORMAT:DST",
		Short:   "Convert a dataset and verify the result before it is published",
		Long:    convertHelp,
		Example: convertExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.failed(&f, args[0], args[1], a.runConvert(cmd, &f, args[0], args[1]))
		},
	}
	f.register(a, cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.dryRun, "dry-run", "n", false, "read the source and show what would be written and lost, with size, space and time, without writing a target")
	fs.BoolVar(&f.force, "force-space", false, "start even if the disks seem too small")
	fs.BoolVar(&f.resume, "resume", false, "continue an unfinished conversion, and keep the work if this run fails for any reason")
	fs.BoolVar(&f.discard, "discard", false, "drop the work of an unfinished conversion and start over; keep no work if this run is cancelled or a disk is full")
	fs.Var(&f.part, "part", "convert one `part` of several, such as 3/16, into the work directory of the target, which machines share")
	fs.BoolVar(&f.finish, "finish", false, "assemble the target from its parts, prove it and publish it")
	fs.BoolVar(&f.assemble, "assemble", false, "assemble the target from its parts in the work directory, for --prove")
	fs.Var(&f.prove, "prove", "read back one `part` of the assembled target, such as 3/8; --finish reads the parts that no process has read")
	fs.Var(cli.Number(&f.proofs, 1, pass.MaxParts), "proofs", "with --finish, require `n` finished parts of the proof, 1 or more (--prove 1/n to n/n), or exit with 5")
	fs.BoolVar(&f.failureReport, "failure-report", false, "if this run fails, write the reason to DST.kvferry-failure.json (-K-of-N.json for a part), for kvferry fleet")
	fs.BoolVar(&f.noProve, "no-prove", false, "skip the proof: do not compute hashes or compare the target with the source")
	cli.Choose(fs, &f.format, "format", cli.Plain("text", "json"), "format of the summary")
	return cmd
}

// register adds the flags that describe a conversion.
func (f *convertFlags) register(a *App, cmd *cobra.Command) {
	f.source.Register(cmd, convertMemory, "beside the target")
	f.choice.Register(cmd)
	fs := cmd.Flags()
	cli.RegisterWorkers(fs, &f.workers)
	cli.Choose(fs, &f.layout, "layout", layouts, "directory layout of the databases: as in the source, in the directory itself, or in db0, db1, …")
	fs.Var(&lossesFlag{to: &f.allowLoss, known: a.losses}, "allow-loss", "`kinds` of losses to accept, separated by commas")
	f.conflict.text = "error"
	fs.Var(&f.conflict, "on-conflict", "if a key exists under several types and the target holds one: fail, rename all but the first to name:type, or keep the first of the given types")
	f.version = 1
	fs.Var(cli.Number(&f.version, 1, math.MaxInt32), "version-epoch", "version of all collections in a Pika target, 1 or more")
	fs.Var(cli.Number(&f.instances, 1, 1024), "instances", "instances of each database in a floyd target (db-instance-num of the server), 1 to 1024")
	fs.Lookup("instances").DefValue = "3"
	fs.Var(cli.Number(&f.slots, 1, math.MaxInt32), "slots", "slots that spread keys over the instances of a floyd target (default-slot-num of the server), 1 or more")
	fs.Lookup("slots").DefValue = "1024"
	fs.StringArrayVar(&f.renameDB, "rename-db", nil, "in a target with named databases, give database A of the source the name B (`A=B`); repeatable")
	fs.StringVar(&f.namespace, "namespace", "", "`name` for database 0, or the only one, in a target with named databases (default: the database that clients start in)")
	fs.BoolVar(&f.cluster, "cluster", false, "write a kvrocks target for cluster mode, with the slot in every key (default: if the source is in cluster mode)")
	fs.BoolVar(&f.sst, "sst", false, "also lay out the SST files of a kvrocks target for SST LOAD into a running server")
	fs.BoolVar(&f.estimate, "estimate", false, "dry run that reads only a sample of the source; takes seconds, except that append-only files, servers and RDB files are read once")
	fs.Var(&f.tried, "estimate-size", "size of the sample that a dry run converts; 0 chooses it by the size of the source")
	cli.Choose(fs, &f.rdb, "rdb-version", cli.Plain(rdb.Versions()...), "RDB version of an rdb target, or of the base file of an aof target; Redis 5.0 and later, Valkey, KeyDB and Dragonfly load version 9")
	f.server.Register(cmd)
	f.progress.Register(cmd)
}

// runConvert runs one conversion: it turns flags into options, calls the library and prints the report.
func (a *App) runConvert(cmd *cobra.Command, f *convertFlags, src, dst string) (err error) {
	o, err := a.convertOptions(cmd, f, src, dst)
	if err != nil {
		return err
	}
	show := a.converting(cmd, &f.progress, o)
	defer func() { show.End(err) }()
	run := convert.Run
	switch {
	case f.part.N > 0:
		return f.runPart(cmd, o, show, src)
	case f.prove.N > 0:
		return f.runProof(cmd, o, show)
	case f.assemble:
		run = convert.Assemble
	case f.finish:
		run = convert.Finish
	case f.dryRun || f.estimate:
		run = convert.DryRun
	}
	rep, err := run(cmd.Context(), o)
	show.End(err)
	var unsaid error
	if f.assemble && rep == nil && err == nil {
		_, unsaid = fmt.Fprintln(page.Painted(cmd.OutOrStdout()), "assembled: run --prove on any machine, and then --finish")
	}
	if rep != nil {
		only := chosen(o.Selection, f.choice.keyFile, rep.Now)
		unsaid = f.showReport(cmd.OutOrStdout(), rep, only, comparing(cmd.Flags(), only, rep, src, dst))
	}
	if published, ok := errors.AsType[*convert.PublishedError](err); ok && published.Synced && unsaid == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %v\n", cli.OneLine(published))
		err = nil
	}
	return errors.Join(explainConvert(cmd, src, err, rep == nil), unsaid)
}

// converting applies the memory of a conversion to the runtime, and starts a view of its progress. end closes it.
func (a *App) converting(cmd *cobra.Command, f *cli.ProgressFlags, o *convert.Options) *cli.ProgressView {
	show := cli.NewProgress(cmd, f, a.Terminal)
	o.Progress = show.Tell
	if a.LimitMemory != nil {
		a.LimitMemory(o.Memory)
	}
	return show
}

// showReport prints the report of a conversion. If printing fails, the error says that the target is complete.
func (f *convertFlags) showReport(w io.Writer, rep *convert.Report, only filter.Conditions, compare string) error {
	text := page.TextFor(w)
	if f.format == "json" {
		if err := cli.PrintJSON(text, rep); err != nil {
			return err
		}
	} else {
		columns, rows := cli.ScreenSize(w)
		w = page.Painted(w)
		report.Print(text, rep, only, compare)
		report.WithTitle(text, columns, rows)
	}
	_, err := text.WriteTo(w)
	if err != nil && !rep.DryRun {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%s is complete, but its report could not be printed; it is in %s: %w",
			rep.Target.Path, rep.File, err)}
	}
	return err
}

// convertOptions turns flags into options.
func (a *App) convertOptions(cmd *cobra.Command, f *convertFlags, src, dst string) (*convert.Options, error) {
	selection, err := f.choice.Selection(f.source.Memory())
	if err != nil {
		return nil, err
	}
	o := &convert.Options{Selection: selection, AllowLoss: f.allowLoss, Version: f.version, Now: f.source.Clock(a),
		NowGiven: !f.source.now.IsZero(), Workers: f.workers, Memory: f.source.Memory(), TempDir: f.source.TempDir(),
		NoProve: f.noProve, Resume: f.resume, Discard: f.discard, ForceSpace: f.force, Proofs: f.proofs, Estimate: f.estimate,
		SampleBytes: int64(f.tried), Namespace: f.namespace, RenameDB: f.renameDB, Cluster: f.cluster, NoCluster: !f.cluster &&
			cmd.Flags().Changed("cluster"), SST: f.sst, MaxBitmap: int64(f.source.maxBitmap),
		Tool: a.Build.String(), Layout: f.layout, Instances: f.instances, Slots: f.slots, Rename: f.conflict.rename,
		Prefer: f.conflict.prefer, Traffic: &runOf(cmd.Context()).traffic}
	f.sampleDry(o)
	if err := f.checkParts(); err != nil {
		return nil, err
	}
	if f.resume && f.discard {
		return nil, cli.Usagef("--resume --discard: an unfinished conversion is continued or dropped, not both")
	}
	if f.version&0xFF == 0xFF {
		return nil, cli.Usagef("--version-epoch %d: the original engines do not find rows of versions whose low byte is 0xFF",
			f.version)
	}
	if err := f.server.check(cmd.Flags()); err != nil {
		return nil, err
	}
	if err := unused(cmd.Flags(), connectNames, src, dst); err != nil {
		return nil, err
	}
	f.source.connect.notices = cmd.ErrOrStderr()
	if o.Target, err = a.target(cmd, dst, f); err != nil {
		return nil, err
	}
	if err := f.setVersion(&o.Target, cmd.Flags()); err != nil {
		return nil, err
	}
	if o.Estimate && o.Target.Address != "" {
		return nil, cli.Usagef("--estimate and --sample need a target on disk; for a server, use --dry-run alone, which reads the whole source and counts the records to write")
	}
	limits := o.Target.Format.Limits()
	if f.namespace != "" && limits.Numbered {
		return nil, cli.Usagef("--namespace %s: databases of %s have numbers", f.namespace, format.LocationName(o.Target.Format))
	}
	if len(f.renameDB) > 0 && limits.Numbered {
		return nil, cli.Usagef("--rename-db %s: databases of %s have numbers", f.renameDB[0],
			format.LocationName(o.Target.Format))
	}
	if f.layout != format.LayoutAuto && !limits.Layouts {
		return nil, cli.Usagef("--layout %s: %s supports only one layout of databases", cmd.Flag("layout").Value,
			format.LocationName(o.Target.Format))
	}
	if f.cluster && !limits.Cluster {
		return nil, cli.Usagef("--cluster: %s does not have a cluster mode", format.LocationName(o.Target.Format))
	}
	if f.sst && !limits.SST {
		return nil, cli.Usagef("--sst: no %s server ingests tables", format.LocationName(o.Target.Format))
	}
	if f.sst && f.cluster {
		return nil, cli.Usagef("--sst --cluster: cluster nodes do not ingest tables")
	}
	if limits.Instances == 0 && (f.instances != 0 || f.slots != 0) {
		return nil, cli.Usagef("--instances and --slots: %s does not spread keys over instances",
			format.LocationName(o.Target.Format))
	}
	if o.Source, err = a.input(cmd, src, &f.source, &f.choice.places); err != nil {
		return nil, err
	}
	return o, nil
}

// sampleDry makes --sample set the share of the source that a dry run reads: the estimate covers the whole
// conversion.
func (f *convertFlags) sampleDry(o *convert.Options) {
	if (f.dryRun || f.estimate) && o.Selection.Sample > 1 {
		o.Estimate, o.SampleEvery, o.Selection.Sample = true, int64(min(o.Selection.Sample, math.MaxInt64)), 0
	}
}

// setVersion sets the version of the RDB files to write.
func (f *convertFlags) setVersion(to *convert.Output, fs *pflag.FlagSet) (err error) {
	if !fs.Changed("rdb-version") {
		return nil
	}
	if to.Format, err = catalog.WithRDBVersion(to.Format, f.rdb); err != nil {
		return cli.Usagef("--rdb-version %s: %w", f.rdb, err)
	}
	return nil
}

// convertMemory is the default of --memory for convert, which sorts its output.
const convertMemory = 512 << 20

var layouts = []cli.Option[format.Layout]{{Name: "auto", Means: format.LayoutAuto}, {Name: "flat", Means: format.LayoutFlat},
	{Name: "db", Means: format.LayoutDB}}

// input finds the source and prepares its options.
func (a *App) input(cmd *cobra.Command, location string, f *SourceFlags, places *PlaceFlags) (convert.Input, error) {
	found, err := a.locate(cmd, location, f)
	if err != nil {
		return convert.Input{}, err
	}
	opener, err := a.opener(found, f.reader)
	if err != nil {
		return convert.Input{}, err
	}
	return found.Input(format.OpenOptions{Store: opener, Kind: found.Driver.Name, WALDir: f.walDir, Pass: places.pass(false),
		MaxBitmap: int64(f.maxBitmap), Stdin: cmd.InOrStdin(),
		Options: store.Options{AllowLive: f.allowLive, Resort: f.resort}}), nil
}

// target parses the location of a target. It must name a format and may name a store.
func (a *App) target(cmd *cobra.Command, location string, flags *convertFlags) (convert.Output, error) {
	fs := cmd.Flags()
	reachable := a.Catalog
	reachable.Uploads = flags.source.objects.counted(cmd.Context())
	out, err := reachable.Target(location)
	if err != nil {
		return convert.Output{}, err
	}
	if out.Objects != nil {
		out.Rate = int64(flags.server.rate)
		return out, unused(fs, slices.DeleteFunc(slices.Clone(serverFlagNames), func(name string) bool { return name == "rate" }),
			out.Shown())
	}
	if r, ok := out.Format.(format.Remote); ok {
		return flags.server.target(r, out.Path, flags.source.connect)
	}
	return out, unused(fs, serverFlagNames, out.Path)
}

// explainConvert sets the exit code of an error. It lists the losses on stderr unless a report has listed them.
func explainConvert(cmd *cobra.Command, src string, err error, list bool) error {
	if _, ok := errors.AsType[*convert.SelectionError](err); ok {
		return cli.Usagef("%w", err)
	}
	var loss *convert.LossError
	if !errors.As(err, &loss) {
		return err
	}
	stderr, refused := cmd.ErrOrStderr(), loss.Refused()
	slices.SortStableFunc(refused, func(a, b convert.LossKind) int { // damage last: losses follow from it
		return cmp.Compare(damages(a.Kind), damages(b.Kind))
	})
	for _, l := range refused {
		l.Samples = l.Samples[:min(len(l.Samples), maxSaid(l.Kind))]
		if list {
			report.Loss(stderr, &l)
		}
		switch l.Kind {
		case record.LossSameName:
			fmt.Fprintln(stderr, "to avoid the loss same-name: --on-conflict rename keeps all of them as name:type; "+
				"--on-conflict keep=TYPES chooses the type that keeps the name")
		case record.LossDamaged:
			fmt.Fprintf(stderr, "damaged: the source is inconsistent or partly unreadable; anything that the findings name may be missing or wrong; "+
				"%s lists everything that is wrong with it\n", verifyLine(cmd, src))
		}
	}
	return &cli.ExitError{Code: cli.ExitLossy, Err: err} // keeps the UnfinishedError inside err
}

// maxSaid is the number of samples of a refused loss. The first of damage is the cause of the others, which verify lists.
func maxSaid(kind string) int {
	if damages(kind) == 1 {
		return 1
	}
	return math.MaxInt
}

// damages is 1 for the loss of what cannot be read, else 0.
func damages(kind string) int {
	if kind == record.LossDamaged {
		return 1
	}
	return 0
}

// failed writes the report of a failure beside the target, or removes that of an earlier run. It returns the outcome.
func (a *App) failed(f *convertFlags, source, target string, outcome error) error {
	to, err := a.Target(target)
	if !f.failureReport || err != nil || to.Format.Limits().Place == format.OnServer {
		return outcome // there is no place beside it
	}
	path := fleet.FailurePath(to.Path, f.part.Part)
	if f.prove.N > 0 {
		path = strings.TrimSuffix(path, ".json") + "-prove-" + f.prove.Name() + ".json"
	}
	if outcome == nil {
		if err := disk.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := escape.Document(&fleet.Failure{Tool: a.Build.String(), Source: convert.Dataset{Path: source},
		Target: convert.Dataset{Path: to.Shown(), Format: to.Format.Name()},
		Part:   f.part.K, Parts: f.part.N, Exit: ExitCode(outcome), Error: cli.OneLine(outcome), At: a.Now().UTC()})
	if err == nil {
		err = disk.WriteFile(path+".new", data)
	}
	if err == nil {
		err = disk.Rename(path+".new", path)
	}
	return errors.Join(outcome, err)
}
