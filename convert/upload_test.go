package convert

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kvferry/convert/work"
	"kvferry/internal/sys/object"
	"kvferry/internal/testkit/fake"
	"kvferry/internal/testkit/s3test"
)

const reportKey = "a/new" + object.ReportEnding

// uploads makes the bench upload its target.
func (b *bench) uploads(address string) {
	to, err := object.NewTarget(address, true, object.Options{Tries: 2, Pause: 1})
	if err != nil {
		panic(err)
	}
	b.o.Target.Objects = to
}

// newUpload returns a server and a bench that uploads to it.
func newUpload(t *testing.T) (*s3test.Fake, *bench) {
	f, b := s3test.NewFake(t), newBench(t, fake.Dataset(1))
	b.uploads("s3://data/a/new")
	return f, b
}

// uploaded returns the files of a bench's target and their bytes, as the server has them, without the report.
func uploaded(f *s3test.Fake) string {
	var out strings.Builder
	for _, key := range f.Keys() {
		if name := strings.TrimPrefix(key, "a/new/"); name != object.ManifestName && key != reportKey {
			out.WriteString(name + " " + string(f.Object(key)) + "\n")
		}
	}
	return out.String()
}

// published checks that the server has a whole target and its report, and the disk only the report.
func (b *bench) published(f *s3test.Fake, want string) {
	b.t.Helper()
	b.leaves("dst.kvferry-report.json", "src")
	rep, err := os.ReadFile(filepath.Join(b.dir, "dst.kvferry-report.json"))
	if err != nil || string(f.Object(reportKey)) != string(rep) {
		b.t.Errorf("the server has another report: %v", err)
	}
	if got := uploaded(f); got != want || !slices.Contains(f.Keys(), "a/new/"+object.ManifestName) || len(f.Uploads()) > 0 {
		b.t.Errorf("the server has %q, unfinished %q", f.Keys(), f.Uploads())
	}
}

// uploadOnce converts a bench into an empty server.
func uploadOnce(t *testing.T) string {
	f, b := newUpload(t)
	b.crashable("never")
	rep, err := Run(context.Background(), &b.o)
	if err != nil || !rep.Proof.Done || rep.Target.Path != "s3://data/a/new" || rep.Target.Files == 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	want := uploaded(f)
	b.published(f, want)
	return want
}

// TestUploadKilled kills conversions into an object store at every phase. With --resume they go on.
func TestUploadKilled(t *testing.T) {
	want := uploadOnce(t)
	for _, p := range conversion {
		if p.name == "" || slices.Contains([]string{"continued", "adopted", "looked", "counted", "concluded"}, p.name) ||
			p.name == "publish" {
			continue
		}
		f, b := newUpload(t)
		b.killed(p.name)
		if slices.Contains(f.Keys(), "a/new/"+object.ManifestName) != slices.Contains([]string{"renamed", "appeared"}, p.name) {
			t.Errorf("%s: %q", p.name, f.Keys())
		}
		b.crashable("never")
		b.o.Resume = true
		if rep, err := Run(context.Background(), &b.o); err != nil || rep.Target.Path != "s3://data/a/new" {
			t.Fatalf("%s: %v", p.name, err)
		}
		b.published(f, want)
	}
}

// TestUploadDiscarded kills conversions before and after they are complete, and starts over.
func TestUploadDiscarded(t *testing.T) {
	want := uploadOnce(t)
	for _, step := range []string{"proved", "uploaded", "appeared"} {
		f, b := newUpload(t)
		b.killed(step)
		b.crashable("never")
		b.o.Discard = true
		_, err := Run(context.Background(), &b.o)
		if step == "appeared" {
			if !errors.Is(err, fs.ErrExist) || uploaded(f) != want {
				t.Errorf("%s: %v", step, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		b.published(f, want)
	}
}

// TestUploadFails fails and cancels in the middle of an upload.
func TestUploadFails(t *testing.T) {
	want := uploadOnce(t)
	for name, c := range map[string]struct {
		cancel, discard, kept bool
	}{"refused": {kept: true}, "refused, discarded": {discard: true}, "cancelled": {cancel: true, kept: true},
		"cancelled, discarded": {cancel: true, discard: true}} {
		f, b := newUpload(t)
		b.crashable("never")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var puts atomic.Int64
		f.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || puts.Add(1) != 4 {
				return false
			}
			if c.cancel {
				cancel()
			}
			s3test.Fail(w, r, http.StatusForbidden, "AccessDenied", "Access Denied")
			return true
		})
		b.o.Discard = c.discard
		_, err := Run(ctx, &b.o)
		var unfinished *UnfinishedError
		if !errors.As(err, &unfinished) || unfinished.Kept != c.kept {
			t.Fatalf("%s: %v", name, err)
		}
		f.Before(nil)
		if !c.kept {
			b.leaves("src")
			if left := f.Keys(); len(left) > 0 {
				t.Errorf("%s: left %q", name, left)
			}
			continue
		}
		b.o.Resume = true
		if _, err := Run(t.Context(), &b.o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.published(f, want)
	}
}

// TestUploadDropped starts over from work that cannot be read, but not from work that another process does.
func TestUploadDropped(t *testing.T) {
	want := uploadOnce(t)
	f, b := newUpload(t)
	b.killed("proved")
	b.crashable("never")
	b.o.Discard = true
	w, _, err := work.Open(b.o.Target.Path, "", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), &b.o); err == nil || !strings.Contains(err.Error(), "another kvferry is using it") {
		t.Errorf("beside another: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.write("dst.kvferry/journal", []byte("{\n"))
	if _, err := Run(t.Context(), &b.o); err != nil {
		t.Fatal(err)
	}
	b.published(f, want)
}

// TestUploadConfused checks that the report of another conversion does not pass for that of an upload.
func TestUploadConfused(t *testing.T) {
	_, b := newUpload(t)
	b.killed("appeared")
	b.crashable("never")
	b.o.Resume = true
	data, err := os.ReadFile(ReportPath(b.o.Target.Path))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(data), `"s3://data/a/new"`, `"s3://data/a/old"`, 1)
	b.write("dst.kvferry-report.json", []byte(other))
	if _, err := Run(t.Context(), &b.o); other == string(data) || err == nil || !strings.Contains(err.Error(), "the report of another conversion") {
		t.Errorf("%v", err)
	}
}

// TestUploadRefused refuses a target that exists or cannot be reached before it reads the source.
func TestUploadRefused(t *testing.T) {
	f, b := newUpload(t)
	f.Put("a/new/x", nil)
	b.fails("s3://data/a/new: already exists")
	b.uploads("s3://other/new")
	b.fails("there is no bucket other")
	if _, err := DryRun(t.Context(), &b.o); err == nil || !strings.Contains(err.Error(), "no bucket other") {
		t.Errorf("dry run: %v", err)
	}
	if err := b.o.checkParts(); err == nil {
		t.Error("in parts")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "dst.kvferry")); err == nil {
		t.Error("a work directory is left")
	}
}
