package convert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// fakeServer is a fake whose targets are on a server: a directory in which written data is visible at once.
type fakeServer struct {
	*fake.Format
	has      []string // keys that exist before the conversion
	gone     int      // the task whose rows may be lost; 0: none
	broken   error    // of Adopt
	miscount error
	earlier  string // CreateOptions.Earlier

	given, expired map[string]int64 // arguments of Check
	looked         int              // records that were only looked up
}

func (f *fakeServer) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	t, err := f.Format.Create(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	f.earlier = o.Earlier
	return &loaded{Target: t.(*fake.Target), server: f}, nil
}

type loaded struct {
	*fake.Target
	server *fakeServer
	taken  []string
}

func (t *loaded) Earlier() string          { return "state of run 7" }
func (t *loaded) Before() map[string]int64 { return nil }
func (t *loaded) Run() string              { return "run 7" }
func (t *loaded) Undo() string             { return "FLUSHALL removes what was written" }

func (t *loaded) Look(string, bool) (record.Writer, error) { return &looker{t: t}, nil }

func (t *loaded) Conflicts() error {
	if len(t.taken) == 0 {
		return nil
	}
	return fmt.Errorf("%d keys exist: %s", len(t.taken), t.taken[0])
}

func (t *loaded) Check(_ context.Context, given, expired map[string]int64) (string, error) {
	t.server.given, t.server.expired = given, expired
	return "the server has what it was given", t.server.miscount
}

func (t *loaded) Adopt(n int, db string, tables []store.Table) error {
	if n == t.server.gone && n != 0 {
		return fmt.Errorf("run 6: %w", format.ErrGone)
	}
	return errors.Join(t.server.broken, t.Target.Adopt(n, db, tables))
}

func (t *loaded) Finish(ctx context.Context) (format.Source, error) {
	if t.Reopen == nil {
		return nil, nil
	}
	return t.Target.Finish(ctx)
}

// looker looks up keys.
type looker struct{ t *loaded }

func (w *looker) Write(b *record.Batch) error {
	w.t.Mu.Lock()
	defer w.t.Mu.Unlock()
	for i := range b.Records {
		if r := &b.Records[i]; b.Begins(i) && !r.Out() {
			w.t.server.looked++
			if slices.Contains(w.t.server.has, string(r.Key)) {
				w.t.taken = append(w.t.taken, string(r.Key))
			}
		}
	}
	return nil
}
func (w *looker) Close() error { return nil }
func (w *looker) Abort()       {}

// serverBench is a bench whose target is a server.
func serverBench(t *testing.T, records []fake.Record) (*bench, *fakeServer) {
	b := newBench(t, records)
	s := &fakeServer{Format: b.to}
	b.to.Bounds.FieldExpiry = true
	b.o.Target = Output{Format: s, Store: "files", Path: filepath.Join(b.dir, "dst"), Address: filepath.Join(b.dir, "server"),
		Verify: true}
	return b, s
}

// fleeting returns records of which some, and fields of some, expire during a conversion.
func fleeting() []fake.Record {
	soon, later := time.Now().Add(5*time.Minute).UnixMilli(), time.Now().Add(72*time.Hour).UnixMilli()
	list := fake.Dataset(1)
	list[0].ExpireMS, list[2].ExpireMS, list[5].ExpireMS = soon, soon, later
	fields := 0
	for i := range list {
		if r := &list[i]; r.Type == record.Hash && len(r.Elems) == 4 && r.ExpireMS == 0 {
			r.Elems[0].ExpireMS, r.Elems[1].ExpireMS, r.Elems[2].ExpireMS = soon, soon, later
			if fields++; fields == 2 {
				break
			}
		}
	}
	return list
}

// serverSteps runs a conversion and returns its steps.
func (b *bench) serverSteps() (*Report, string, error) {
	var steps []string
	b.o.Progress = func(p Progress) {
		if !slices.Contains(steps, p.Phase) {
			steps = append(steps, p.Phase)
		}
	}
	rep, err := Run(context.Background(), &b.o)
	return rep, strings.Join(steps, " "), err
}

// TestServer checks that a server is read back, or its keys are counted. Both leave out data that the server will
// have dropped as expired.
func TestServer(t *testing.T) {
	for verify, want := range map[bool]string{true: "plan count convert finish fetch prove publish", false: "plan count convert finish publish"} {
		b, s := serverBench(t, fleeting())
		b.o.Target.Verify = verify
		rep, steps, err := b.serverSteps()
		if err != nil {
			t.Fatal(err)
		}
		b.leaves("dst.kvferry-report.json", "server", "src")
		proof := Proof{Done: true, Unit: "milliseconds", Expired: 2, ExpiredFields: 4}
		if !verify {
			proof = Proof{Counted: true, Why: "the server has what it was given"}
			if !maps.Equal(s.given, map[string]int64{"0": 60}) || !maps.Equal(s.expired, map[string]int64{"0": 2}) {
				t.Errorf("given %v, of which %v have expired", s.given, s.expired)
			}
		}
		if steps != want || rep.Proof != proof || rep.Target.Path != b.o.Target.Address || rep.Target.Files != 0 ||
			rep.Records() != 60 {
			t.Errorf("steps %s, proof %+v, target %+v, %d records", steps, rep.Proof, rep.Target, rep.Records())
		}
		if s.looked != 60 {
			t.Errorf("%d keys were looked for", s.looked)
		}
	}
}

// TestNothingLapsesOnDisk checks that records expire during the conversion only on a server.
func TestNothingLapsesOnDisk(t *testing.T) {
	for address, lapses := range map[string]bool{"": false, "redis://x": true} {
		a := &attempt{run: &run{o: &Options{Target: Output{Address: address}}}, id: &work.Identity{}}
		if (a.lapse() != nil) != lapses {
			t.Errorf("%q: lapses %t", address, !lapses)
		}
	}
}

// TestServerDry checks that a dry run looks up keys on a server, but makes no estimate.
func TestServerDry(t *testing.T) {
	b, s := serverBench(t, fake.Dataset(1))
	rep, err := DryRun(context.Background(), &b.o)
	if err != nil || rep.Estimate != nil || rep.Records() != 60 || s.looked != 60 {
		t.Errorf("%+v, %v; %d looked for", rep, err, s.looked)
	}
	s.has = []string{"key07"}
	if _, err := DryRun(context.Background(), &b.o); err == nil || err.Error() != "2 keys exist: key07" {
		t.Error(err)
	}
}

// TestServerRefuses checks that losses and conflicts stop a conversion before it writes to the server, and that later
// errors describe the data left there.
func TestServerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench, *fakeServer)
		want   string
		wrote  bool
	}{
		"conflict": {func(b *bench, s *fakeServer) { s.has = []string{"key07"} }, "2 keys exist: key07", false},
		"loss": {func(b *bench, s *fakeServer) {
			b.from.Wrap = func(s *fake.Source) { s.Held["0"][3].Key = []byte("lost") }
		}, "key-too-long", false},
		"count": {func(b *bench, s *fakeServer) { b.o.Target.Verify, s.miscount = false, errors.New("3 keys are missing") },
			"the proof failed; the written data stays on the server: 3 keys are missing", true},
		"proof": {func(b *bench, s *fakeServer) {
			b.to.Spoil = func(r *fake.Record) { r.Elems[0].Value = []byte("other") }
		},
			"the proof failed; the written data stays on the server: database 0 hash: fingerprint ", true},
	} {
		b, s := serverBench(t, fake.Dataset(1))
		c.change(b, s)
		_, err := Run(context.Background(), &b.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "; FLUSHALL removes what was written") {
			t.Errorf("%s: %v", name, err)
		}
		files, _ := filepath.Glob(filepath.Join(b.dir, "server", "*"))
		if len(files) > 0 != c.wrote {
			t.Errorf("%s: the server has %q", name, files)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "dst.kvferry-report.json")); err == nil {
			t.Errorf("%s: a report is published", name)
		}
	}
}

// TestRunningSource checks that a conversion from a running server, whose data changes, is not resumed.
func TestRunningSource(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.from.Bounds.Place, b.o.Resume = format.OnServer, true
	b.fails("leave out --resume, or convert the server to an RDB file first")
}

// TestServerResumed checks that a resumed run keeps the data of an earlier process on a server, except tasks that the
// server may have lost.
func TestServerResumed(t *testing.T) {
	for _, step := range []string{"written 1", "kept", "finished", "proved"} {
		b, s := serverBench(t, fake.Dataset(1))
		ctx, stop := context.WithCancel(context.Background())
		b.o.Workers, b.o.Resume, b.o.Target.Verify = 1, true, false
		var written, run []string // tasks
		b.o.crash = func(s string) {
			if n, ok := strings.CutPrefix(s, "written "); ok {
				written = append(written, n)
			}
			if s == step {
				stop()
			}
		}
		if _, err := Run(ctx, &b.o); step == "written 1" && !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", step, err)
		} else if err == nil {
			continue // too late to stop it
		}
		b.o.crash = func(s string) {
			if n, ok := strings.CutPrefix(s, "written "); ok {
				run = append(run, n)
			}
		}
		s.broken = errors.New("no such rows")
		if _, err := Run(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), "cannot be resumed") {
			t.Errorf("%s: %v", step, err)
		}
		s.gone, s.broken = 3, nil
		rep, err := Run(context.Background(), &b.o)
		if err != nil || rep.Records() != 60 || !rep.Timings.Resumed || s.earlier != "state of run 7" {
			t.Fatalf("%s: %+v, %v; created with %q", step, rep, err, s.earlier)
		}
		want := []string{"3"}
		if !slices.Contains(written, "2") { // the last task may finish before the first run stops
			want = append(want, "2")
			slices.Sort(want)
		}
		slices.Sort(run)
		if !slices.Equal(run, want) {
			t.Errorf("%s: tasks %s were run again, not %s", step, run, want)
		}
	}
}

func (f *fakeServer) With(*format.ServerOptions) format.Format { return f }
func (f *fakeServer) Work(string) (string, error)              { return "", nil }
func (f *fakeServer) Same(location, earlier string) bool {
	return earlier == "state of run 7" && strings.HasSuffix(location, "server")
}

// TestServerLost checks that the work of a run is kept if its server is lost, and can be resumed with another address
// of the same servers.
func TestServerLost(t *testing.T) {
	b, s := serverBench(t, fake.Dataset(1))
	b.o.Target.Verify = false
	s.miscount = fmt.Errorf("it: %w", &format.LostError{Err: errors.New("gone")})
	var unfinished *work.UnfinishedError
	if _, err := Run(context.Background(), &b.o); !errors.As(err, &unfinished) || !unfinished.Kept {
		t.Fatalf("%+v, %v", unfinished, err)
	}
	s.miscount = nil
	path := b.o.Target.Path
	again := func(address string) (*Report, error) {
		b.o.Target.Path, b.o.Target.Address, b.o.Resume = path+"2", address, true
		return Run(context.Background(), &b.o)
	}
	rep, err := again(b.dir + "/./server")
	if err != nil || rep.Records() != 60 || !rep.Timings.Resumed {
		t.Fatalf("%+v, %v", rep, err)
	}
	for name, want := range map[string]bool{path: false, path + "2": false} {
		if _, err := os.Lstat(work.Path(name)); (err == nil) != want {
			t.Errorf("%s: %v", work.Path(name), err)
		}
	}
	if _, err := os.Stat(work.ReportPath(path)); err != nil {
		t.Error(err)
	}
}
