package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/inspect/compare"
	"kvferry/inspect/render"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
	"kvferry/redis/live"
)

// diffServer compares a server with what the reported conversion of A into it would write now. It converts A to a
// temporary RDB file that has the same losses.
func (a *App) diffServer(cmd *cobra.Command, f *diffFlags, rep *convert.Report, locA, locB string) (err error) {
	ctx := cmd.Context()
	read := f.read
	read.choice = SelectFlags{expired: "drop"} // a server has no expired keys
	b, err := a.unopened(cmd, locB, f.sides.second(read))
	if err == nil {
		err = tryOutputs(cmd)
	}
	if err != nil {
		return mapUsage(err)
	}
	dir, err := disk.MkdirTemp(f.read.source.TempDir(), "kvferry-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(dir)) }()
	again, err := a.writeAgain(cmd, f, rep, b, locA, filepath.Join(dir, "a.rdb"))
	if err != nil {
		return err
	}
	show := cli.NewProgress(cmd, &f.read.progress, a.Terminal)
	defer func() { show.End(err) }()
	read.source.walDir = ""
	da, err := a.unopened(cmd, "rdb:"+again.Target.Path, &read)
	if err != nil {
		return err
	}
	preparing(show, f.steps(), da, b)
	for _, d := range []*Dataset{da, b} {
		if err := d.open(ctx, nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Opened.Source.Close()) }()
		d.Scan.Memory /= 2
	}
	f.watch(show, da.Scan, b.Scan)
	x := &kept{f: f, rep: rep, counts: map[compare.DBPair]*[3]int64{},
		res: &convertedDiff{Report: rep.File, Explained: again.Losses, Changed: changedLosses(rep.Losses, again.Losses)}}
	return cli.ToOutput(cmd, f.output, func(w io.Writer) error { return x.compare(cmd, da, b, w) })
}

// writeAgain repeats the conversion of A, into an RDB file with the losses of server b.
func (a *App) writeAgain(cmd *cobra.Command, f *diffFlags, rep *convert.Report, b *Dataset,
	locA, path string) (_ *convert.Report, err error) {
	o, err := a.repeat(cmd, rep, locA, "rdb:"+path)
	if err != nil {
		return nil, err
	}
	if o.Target.Format, err = b.Found.Format.(*live.Format).Held(b.Found.Location.Path, rep.Proof.Done); err != nil {
		return nil, err
	}
	o.NoProve, o.AllowLoss = true, nil
	for _, l := range a.losses() {
		o.AllowLoss = append(o.AllowLoss, l.Kind)
	}
	show := a.converting(cmd, &f.read.progress, o)
	defer func() { show.End(err) }()
	return convert.Run(cmd.Context(), o)
}

// kept compares a server with what a conversion into it writes. The keys that the server had before are no
// differences, as far as the report counts them.
type kept struct {
	f   *diffFlags
	rep *convert.Report
	res *convertedDiff

	key      []byte                       // of the last difference
	counts   map[compare.DBPair]*[3]int64 // differing keys by class
	explains map[compare.DBPair][3]bool
	lines    []string
}

// The classes of differing keys.
const (
	keyMissing = iota // the server does not have it
	keyOther          // the server has another value
	keyExtra          // only the server has it
)

// classOf returns the class of the key of a difference.
func classOf(d *compare.Difference) int {
	switch {
	case d.Side == compare.Changed || d.What != compare.Record || d.Retyped:
		return keyOther
	case d.Side == compare.OnlyA:
		return keyMissing
	}
	return keyExtra
}

// count counts the keys that differ.
func (k *kept) count(d *compare.Difference) error {
	if k.counts[d.DB] == nil {
		k.counts[d.DB], k.key = new([3]int64), nil
	}
	if k.key == nil || !bytes.Equal(k.key, d.Header.Key) {
		k.key = append([]byte{}, d.Header.Key...)
		k.counts[d.DB][classOf(d)]++
	}
	return compare.ErrExpected
}

// explainDifferences decides which differences the report explains, and whether it explains all.
func (k *kept) explainDifferences() bool {
	explained := true
	skipped := map[string]int64{}
	for _, p := range k.rep.Skipped {
		skipped[string(p.DB)] += p.Records
	}
	k.explains = map[compare.DBPair][3]bool{}
	for _, p := range slices.SortedFunc(maps.Keys(k.counts), func(a, b compare.DBPair) int {
		return record.CompareNames(a.String(), b.String())
	}) {
		n, left := k.counts[p], skipped[p.A]
		others := k.rep.Before[p.B] - left
		k.explains[p] = [3]bool{keyOther: n[keyOther] <= left, keyExtra: n[keyExtra] <= others}
		explained = explained && n[keyMissing] == 0 && n[keyOther] <= left && n[keyExtra] <= max(others, 0)
		k.line(p, n[keyOther], left, "%s of A with another value on the server; the report has %s skipped")
		k.line(p, n[keyExtra], others, "%s that A does not have; the server had %s more before")
		k.res.Kept += min(n[keyOther], left) + min(n[keyExtra], max(others, 0))
	}
	return explained
}

// line notes how many keys differ, and whether the report explains as many.
func (k *kept) line(p compare.DBPair, n, most int64, format string) {
	if n == 0 {
		return
	}
	begin := "  "
	if n > most {
		begin = "not explained: "
	}
	k.lines = append(k.lines, fmt.Sprintf(begin+"database %s: "+format+"\n", escape.Text(p.String()), record.Count(n, "key"),
		record.Number(max(most, 0))))
}

// compare counts the keys that differ. If the report does not explain all of them, it compares again and lists the rest.
func (k *kept) compare(cmd *cobra.Command, a, b *Dataset, w io.Writer) error {
	printer := render.NewDiffPrinter(w, k.f.format, k.f.max, k.f.limit)
	run := func(tell func(*compare.Difference) error) error {
		res, err := compare.Diff(cmd.Context(), &compare.Options{A: a.Scan, B: b.Scan, Tell: tell})
		if err = b.checkUnchanged(a.checkUnchanged(err)); err == nil {
			k.res.Result = *res
		}
		return err
	}
	if err := run(k.count); err != nil {
		return mapUsage(err)
	}
	explained := k.explainDifferences()
	if k.f.format != "json" {
		printExplained(w, k.res, k.rep)
		fmt.Fprint(page.Painted(w), strings.Join(k.lines, ""))
	}
	if !explained {
		list := func(d *compare.Difference) error {
			if k.explains[d.DB][classOf(d)] {
				return compare.ErrExpected
			}
			return printer.Difference(d)
		}
		if err := run(list); err != nil {
			return err
		}
	}
	k.res.Equal = explained && len(k.res.Changed) == 0
	return k.finish(printer, w, explained)
}

// finish prints the totals.
func (k *kept) finish(printer *render.DiffPrinter, w io.Writer, explained bool) (err error) {
	switch {
	case k.f.format == "json":
		err = cli.PrintJSON(w, k.res)
	case !explained:
		err = printer.Finish(&k.res.Result)
	default:
		verdict := "equal as converted: %s compared; all differences are keys that the server had before\n"
		switch {
		case !k.res.Equal:
			verdict = "A has changed since its conversion; the server has the %s that a conversion of A writes now\n"
		case k.res.Kept == 0:
			verdict = "equal as converted: the server has the %s that the conversion of A writes\n"
		}
		_, err = fmt.Fprintf(page.Painted(w), verdict, record.Count(k.res.Alike+k.res.Records, "record"))
	}
	if err == nil && !k.res.Equal {
		return &cli.ExitError{Code: cli.ExitFindings}
	}
	return err
}
