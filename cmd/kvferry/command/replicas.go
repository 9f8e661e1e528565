package command

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/serve"
	"kvferry/serve/master"
)

// replicaFlags are the flags of serve for replicas.
type replicaFlags struct {
	version   string
	rate      cli.SizeFlag
	allowLoss []string
	conflict  conflictFlag
	synced    int
}

// anyVersion lets each replica have the version that it loads.
const anyVersion = "auto"

// Register adds the flags to a command.
func (f *replicaFlags) Register(a *App, cmd *cobra.Command) {
	fs := cmd.Flags()
	cli.Choose(fs, &f.version, "rdb-version", cli.Plain(append([]string{anyVersion}, rdb.Versions()...)...),
		"RDB version for replicas; auto chooses by the replica's version, or 9, which Redis 5.0 and later, Valkey, KeyDB and Dragonfly load")
	fs.Var(&f.rate, "rate", "maximum bytes per second to send to all replicas, such as 20MiB; 0 for no limit (default)")
	fs.Var(&lossesFlag{to: &f.allowLoss, known: a.losses}, "allow-loss", "`kinds` of losses to accept for replicas, separated by commas")
	f.conflict.text = "error"
	fs.Var(&f.conflict, "on-conflict", "if a key exists under several types: show clients the first and do not serve replicas, rename all but the first to name:type, or send replicas the first of the given types")
	fs.Var(cli.Number(&f.synced, 0, 0), "exit-when-synced", "exit with code 0 when `n` replicas are in sync; 0 to keep serving (default)")
}

// master returns what feeds replicas of a dataset, which is opened later. It calls done when enough of them have everything.
func (a *App) master(cmd *cobra.Command, f *serveFlags, location string, d *Dataset, shared *convert.Shared, log func(string),
	done func()) (*master.Master, error) {
	m := &master.Master{Log: log, Workers: runtime.GOMAXPROCS(0)}
	if f.replicas.version != anyVersion {
		v, err := rdb.ParseVersion(f.replicas.version)
		if err != nil {
			return nil, cli.Usagef("--rdb-version %s: %w", f.replicas.version, err)
		}
		m.Version = &v
	}
	m.Limit.Rate = int64(f.replicas.rate)
	o := &convert.Options{Selection: d.Scan.Selection, AllowLoss: f.replicas.allowLoss, Rename: f.replicas.conflict.rename,
		Prefer: f.replicas.conflict.prefer, Now: d.Scan.Now, NowGiven: true, Memory: f.read.source.Memory() / master.MaxPasses,
		TempDir: f.read.source.TempDir(), MaxBitmap: int64(f.read.source.maxBitmap), Tool: a.Build.String()}
	options := d.options
	options.Pass = f.read.choice.places.pass(false)
	o.Source = d.Found.Input(options)
	m.Open = func(ctx context.Context) (*convert.Feeder, error) {
		shared.Source, shared.Sources = d.Stores.Named(d.Opened.Source), d.Scan.Sources
		return convert.NewFeeder(ctx, o, shared)
	}
	m.Judged = func(rep *convert.Report, err error) { judged(cmd, location, rep, err) }
	m.Synced = func(n int) {
		if f.replicas.synced > 0 && n >= f.replicas.synced {
			done()
		}
	}
	return master.New(m), nil
}

// judged lists what replicas do not get.
func judged(cmd *cobra.Command, location string, rep *convert.Report, err error) {
	w := cmd.ErrOrStderr()
	if rep != nil {
		for i := range rep.Losses {
			report.Loss(w, &rep.Losses[i])
		}
		for i := range rep.Findings {
			report.Finding(w, &rep.Findings[i])
		}
	}
	if err = explainConvert(cmd, location, err, rep == nil); err != nil {
		fmt.Fprintf(w, "kvferry: refusing replicas: %s\n", escape.Text(err.Error()))
	}
}

// idleEvery is the time between the lines on a terminal that show a server at work.
const idleEvery = time.Minute

// idle prints a line about the server at each tick until ctx is done.
func idle(ctx context.Context, tick <-chan time.Time, s *serve.Server, m *master.Master) {
	before := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now := s.Stats.Commands.Load()
		s.Log(fmt.Sprintf("%s, %s; %s, %s since the last line; %s received, %s sent", record.Count(int64(s.Clients.Len()), "client"),
			record.Count(int64(m.Replicas()), "replica"), record.Count(now, "command"), record.Number(now-before),
			record.Bytes(s.Stats.In.Load()), record.Bytes(s.Stats.Out.Load())))
		before = now
	}
}
