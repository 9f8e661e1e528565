package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/patch"
	"kvferry/record"
	"kvferry/redis/live"
)

const patchHelp = `Bring a server up to date with a patch that kvferry diff wrote:

  kvferry diff --format patch -o patch.jsonl /data/new-dump redis://db1:6379
  kvferry patch patch.jsonl redis://db1:6379

The patch replaces keys that differ, adds missing keys, changes expiries, and deletes keys that the
dataset does not have (--no-delete keeps them). kvferry reads the whole patch
and checks its sum before the first write. Applying a patch twice has the effect of applying it once.
FILE - is standard input, which is copied to a temporary file first. --resume
continues a run that was killed, as long as the server was not restarted.`

const patchExample = `  kvferry patch patch.jsonl redis://127.0.0.1:6379
  kvferry patch --no-delete --rate 20MiB patch.jsonl.gz redis://127.0.0.1:6379`

// patchFlags are the flags of patch.
type patchFlags struct {
	connect  connectFlags
	rate     cli.SizeFlag
	noDelete bool
	dryRun   bool
	resume   bool
	tempDir  string
	memory   cli.MemoryFlag
}

// patch applies a patch to a server.
func (a *App) patch() *cobra.Command {
	var f patchFlags
	cmd := &cobra.Command{
		Use:     "patch FILE redis://SERVER",
		Short:   "Bring a server up to date with a newer dataset",
		Long:    patchHelp,
		Example: patchExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runPatch(cmd, &f, args[0], args[1]) },
	}
	fs := cmd.Flags()
	f.connect.Register(fs)
	_ = fs.MarkHidden("scan") // patch reads no data from the server; connect has registered the flag
	fs.Var(&f.rate, "rate", rateUsage)
	fs.BoolVar(&f.noDelete, "no-delete", false, "do not delete keys that the dataset does not have")
	fs.BoolVarP(&f.dryRun, "dry-run", "n", false, "check the patch and count its changes, without applying them")
	fs.BoolVar(&f.resume, "resume", false, "continue a run that was killed")
	fs.StringVar(&f.tempDir, "temp-dir", "", "`directory` for temporary files (default: "+systemTemp+")")
	f.memory.Register(fs, readMemory)
	return cmd
}

// patched is one application of a patch.
type patched struct {
	*patchFlags
	file    string
	in      *disk.File // the patch
	target  format.Target
	losses  map[string]int64
	journal string
	done    patchState
}

// patchState is the progress of a run, as written to its journal.
type patchState struct {
	SHA256 string `json:"sha256"`
	Server string `json:"server"` // run ID of the server
	Line   int64  `json:"line"`   // all lines before it are done
}

func (a *App) runPatch(cmd *cobra.Command, f *patchFlags, file, address string) (err error) {
	if !live.IsAddress(address) {
		return cli.Usagef("%s: a patch is applied to a server: redis://host:port", address)
	}
	var remote format.Remote = live.New()
	work, err := remote.Work(address)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	f.connect.notices = cmd.ErrOrStderr()
	o, err := f.connect.options()
	if err != nil {
		return err
	}
	if a.LimitMemory != nil {
		a.LimitMemory(int64(f.memory.SizeFlag))
	}
	o.Existing, o.Rate = format.Replace, int64(f.rate)
	in, err := openPatch(cmd, file, f.tempDir)
	if err != nil {
		return err
	}
	defer in.Close()
	p := &patched{patchFlags: f, file: file, in: in, losses: map[string]int64{}, journal: work + ".kvferry-patch"}
	dbs, counts, sum, err := p.readPatch(cmd.Context(), nil)
	if err != nil {
		return err
	}
	p.target, err = remote.With(o).Create(cmd.Context(), address,
		&format.CreateOptions{DBs: dbs, TempDir: f.tempDir, Now: a.Now()})
	if err != nil {
		return err
	}
	defer p.target.Abort()
	if _, _, _, err := p.readPatch(cmd.Context(), p.target); err != nil {
		return err
	}
	if err := p.refuse(cmd.ErrOrStderr()); err != nil {
		return err
	}
	if f.dryRun {
		fmt.Fprintf(cmd.OutOrStdout(), "%s would be applied to %s: %s\n", file, address, p.text(counts))
		return nil
	}
	if err := p.begin(sum); err != nil {
		return err
	}
	if err := p.apply(cmd.Context()); err != nil {
		return fmt.Errorf("%w; the changes applied so far remain; apply the patch again, or continue with --resume", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s was applied to %s: %s\n", file, address, p.text(counts))
	return nil
}

// text summarizes a patch.
func (p *patched) text(c patch.Counts) string {
	deleted := record.Count(c.Deletes, "key") + " deleted"
	if p.noDelete {
		deleted = record.Count(c.Deletes, "key") + " left that would be deleted"
	}
	return fmt.Sprintf("%s put, %s of another expiry, %s", record.Count(c.Puts, "key"), record.Count(c.Expires, "key"), deleted)
}

// openPatch opens a patch for reading it several times. It copies standard input and pipes to a temporary file.
func openPatch(cmd *cobra.Command, file, tempDir string) (*disk.File, error) {
	from := cmd.InOrStdin()
	if file != cli.Standard {
		if st, err := disk.Stat(file); err == nil && st.IsDir() {
			return nil, cli.Usagef("%s: is a directory; a patch is a file, which kvferry diff --format patch writes", file)
		}
		f, err := cli.OpenFile(file)
		if err != nil {
			return nil, err
		}
		st, err := f.Stat()
		if err != nil || st.Mode().IsRegular() {
			return f, err
		}
		defer f.Close()
		from = f
	}
	f, err := disk.Temp(tempDir, "patch")
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(from, patchHead)
	if err = isPatch(in); err == nil {
		_, err = io.Copy(f, in)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// patchHead is the number of bytes to check before copying a stream, which may be endless.
const patchHead = 256 << 10

// isPatch refuses a stream that does not begin like a patch.
func isPatch(in *bufio.Reader) error {
	head, err := in.Peek(patchHead)
	if err != nil {
		return nil // a short stream; reading it reports errors
	}
	text, err := cli.Decompressed(bytes.NewReader(head))
	if err == nil {
		defer text.Close()
		_, err = patch.NewReader(text)
	}
	return err
}

// open reads the patch from its beginning.
func (p *patched) open(do func(*patch.Reader) error) error {
	in, err := cli.Decompressed(io.NewSectionReader(p.in, 0, math.MaxInt64))
	if err == nil {
		defer in.Close()
		var r *patch.Reader
		if r, err = patch.NewReader(in); err == nil {
			err = do(r)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	return nil
}

// readPatch reads the whole patch and returns its databases, counts and checksum. With a target it also counts losses.
func (p *patched) readPatch(ctx context.Context,
	target format.Target) (dbs []string, counts patch.Counts, sum string, err error) {
	err = p.open(func(r *patch.Reader) error {
		batch := make([]record.Element, record.BatchLen)
		for n := 0; ; n++ {
			op, h, err := r.Next()
			if err == io.EOF {
				counts, sum = r.Counts(), r.Sum()
				return nil
			}
			if err = cmp.Or(err, record.Stopped(ctx, n)); err != nil {
				return err
			}
			if !slices.Contains(dbs, h.DB) {
				dbs = append(dbs, h.DB)
			}
			if op == patch.Put {
				if err := p.weigh(r, h, target, batch); err != nil {
					return err
				}
			}
		}
	})
	return dbs, counts, sum, err
}

// weigh reads a record and counts its losses.
func (p *patched) weigh(r *patch.Reader, h *record.Header, target format.Target, batch []record.Element) error {
	lost := func(l record.Loss) {
		if !l.Note {
			p.losses[l.Kind]++
		}
	}
	head := *h
	if target != nil {
		for _, l := range target.Losses(&head) {
			lost(l)
		}
	}
	for {
		n, err := r.Read(batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if target != nil {
			target.ElementLosses(&head, batch[:n], lost)
		}
	}
}

// refuse stops before the first write if the server cannot hold everything.
func (p *patched) refuse(stderr io.Writer) error {
	if len(p.losses) == 0 {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(p.losses)) {
		fmt.Fprintf(stderr, "%s × %s\n", record.Number(p.losses[kind]), kind)
	}
	return &cli.ExitError{Code: cli.ExitLossy, Err: errors.New("refused: the server cannot hold all data in the patch; it was not changed;  " +
		"to leave records out of a patch, run kvferry diff with filters such as --type")}
}

// begin finds the line to start at and writes the journal.
func (p *patched) begin(sum string) error {
	now := patchState{SHA256: sum, Server: p.target.(format.Loaded).Run()}
	data, err := disk.ReadFile(p.journal)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.resume:
		return fmt.Errorf("%s does not exist, so there is no run to resume; leave out --resume", p.journal)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case p.resume:
		if err := json.Unmarshal(data, &p.done); err != nil {
			return fmt.Errorf("%s: %w", p.journal, err)
		}
		line := p.done.Line
		p.done.Line = 0
		if p.done != now {
			return fmt.Errorf("%s: belongs to another patch, or the server was restarted and may have lost applied changes; leave out --resume",
				p.journal)
		}
		now.Line = line
	}
	p.done = now
	if err := p.save(); err != nil {
		return fmt.Errorf("%w; --resume needs this file: run kvferry in a writable directory", err)
	}
	return nil
}

func (p *patched) save() error {
	data, err := json.Marshal(p.done)
	if err != nil {
		return err
	}
	half := p.journal + ".half"
	if err = disk.WriteFile(half, append(data, '\n')); err == nil {
		err = disk.Rename(half, p.journal)
	}
	if err == nil {
		err = disk.SyncPath(filepath.Dir(p.journal))
	}
	return err
}

// saveEvery is the number of operations between saves of the journal.
const saveEvery = 20000

// apply sends the operations. After every saveEvery it waits for all replies and saves the journal.
func (p *patched) apply(ctx context.Context) error {
	err := p.open(func(r *patch.Reader) error {
		s := &sending{patched: p, batch: make([]record.Element, record.BatchLen)}
		err := s.all(ctx, r)
		if err != nil && s.to != nil {
			s.to.Abort()
		}
		return err
	})
	if err == nil {
		err = disk.Remove(p.journal)
	}
	return err
}

// sending is the state of sending a patch.
type sending struct {
	*patched
	to    format.Changer // for database db
	db    string
	shard int
	batch []record.Element
}

func (s *sending) all(ctx context.Context, r *patch.Reader) error {
	for n := 1; ; n++ {
		op, h, err := r.Next()
		if err == io.EOF {
			return s.close()
		}
		if err != nil {
			return err
		}
		if r.Line() < s.done.Line {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if n%saveEvery == 0 {
			if err := s.note(r.Line()); err != nil {
				return err
			}
		}
		if err := s.change(h.DB); err != nil {
			return err
		}
		if err := s.one(op, h, r); err != nil {
			return fmt.Errorf("line %d: %w", r.Line(), err)
		}
	}
}

// note waits until all operations before a line are done, and saves that.
func (s *sending) note(line int64) error {
	if err := s.close(); err != nil {
		return err
	}
	s.done.Line = line
	return s.save()
}

func (s *sending) close() error {
	if s.to == nil {
		return nil
	}
	err := s.to.Close()
	s.to = nil
	return err
}

// change switches to a database.
func (s *sending) change(db string) error {
	if s.to != nil && s.db == db {
		return nil
	}
	if err := s.close(); err != nil {
		return err
	}
	w, err := s.target.Shard(s.shard, db, record.AllTypes, int64(s.memory.SizeFlag)/4)
	if err != nil {
		return err
	}
	s.shard++
	s.to, s.db = w.(format.Changer), db
	return nil
}

// one applies an operation.
func (s *sending) one(op patch.Op, h *record.Header, r *patch.Reader) error {
	switch {
	case op == patch.Expire:
		return s.to.Expire(h.Key, h.ExpireMS)
	case op == patch.Delete && s.noDelete:
		return nil
	case op == patch.Delete:
		return s.to.Delete(h)
	}
	if err := s.to.Begin(h); err != nil {
		return err
	}
	for {
		n, err := r.Read(s.batch)
		if err == io.EOF {
			return s.to.End()
		}
		if err == nil {
			err = s.to.Elements(s.batch[:n])
		}
		if err != nil {
			return err
		}
	}
}
