package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/s3test"
)

// target is a directory or a file to upload, and where to.
type target struct {
	*Target
	root  string
	files []File
	want  map[string][]byte // by key
}

// newTarget makes local files: a large one of three parts, a small and an empty one.
func newTarget(t testing.TB, dir bool) *target {
	t.Helper()
	to, err := NewTarget("s3://data/a/new", dir, quick)
	if err != nil {
		t.Fatal(err)
	}
	return filled(t, to, 100_000)
}

// filled makes the files of a target with parts of a size.
func filled(t testing.TB, to *Target, part int) *target {
	x, dir := &target{Target: to, root: filepath.Join(t.TempDir(), "x"), want: map[string][]byte{}}, to.dir
	to.least = int64(part)
	large := data(2*part + 1000)
	sizes := map[string][]byte{".": large}
	if dir {
		sizes = map[string][]byte{"db/large": large, "small": data(1000), "db/empty": {}}
	}
	for name, b := range sizes {
		file := filepath.Join(x.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b, 0o644)); err != nil {
			t.Fatal(err)
		}
		x.files = append(x.files, File{name, int64(len(b))})
		x.want[strings.TrimSuffix("a/new/"+name, "/.")] = b
	}
	return x
}

// upload is an upload with some requests at the same time.
func (x *target) upload(run string, ids map[string]string) *Upload {
	return &Upload{Run: run, IDs: ids, Workers: 3, Sent: func(int64) {}, Report: []byte("report")}
}

func (x *target) send(ctx context.Context, u *Upload) error {
	err := x.Check(ctx, u.Run)
	if err == nil {
		err = x.Upload(ctx, u, x.root, x.files)
	}
	if err == nil {
		err = x.Publish(ctx, u, x.files)
	}
	return err
}

// whole checks that the store has the target and nothing else.
func (x *target) whole(t *testing.T, f *s3test.Fake) {
	t.Helper()
	n := len(x.want) + 1 // the report
	if got := f.Object(x.report()); string(got) != "report" {
		t.Errorf("the report is %q", got)
	}
	if x.dir {
		n++ // the manifest
	}
	if keys := f.Keys(); len(keys) != n || len(f.Uploads()) > 0 {
		t.Errorf("the store has %q, unfinished %q", keys, f.Uploads())
	}
	for key, want := range x.want {
		if !bytes.Equal(f.Object(key), want) {
			t.Errorf("%s: %d bytes, want %d", key, len(f.Object(key)), len(want))
		}
	}
}

// uploadFaults are what may happen to every third request.
func uploadFaults() map[string]func(w http.ResponseWriter, r *http.Request) bool {
	return map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"none": func(http.ResponseWriter, *http.Request) bool { return false },
		"503": func(w http.ResponseWriter, r *http.Request) bool {
			s3test.Fail(w, r, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			return true
		},
		"broken": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	}
}

// TestUpload uploads a file and a directory while every third request fails in some way, and reads them back.
func TestUpload(t *testing.T) {
	for name, fault := range uploadFaults() {
		for _, dir := range []bool{false, true} {
			t.Run(fmt.Sprint(name, dir), func(t *testing.T) {
				f, x := s3test.NewFake(t), newTarget(t, dir)
				var n, sent atomic.Int64
				f.Before(func(w http.ResponseWriter, r *http.Request) bool { return n.Add(1)%3 == 1 && fault(w, r) })
				u := x.upload("run", nil)
				u.Sent = func(n int64) { sent.Add(n) }
				if err := x.send(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				f.Before(nil)
				x.whole(t, f)
				total := int64(0)
				for _, b := range x.want {
					total += int64(len(b))
				}
				if sent.Load() != total {
					t.Errorf("%d bytes were counted, want %d", sent.Load(), total)
				}
				x.readBack(t)
			})
		}
	}
}

// readBack lists what was uploaded as a source.
func (x *target) readBack(t *testing.T) {
	t.Helper()
	at := mounted(t, x.Address(), quick)
	var names []string
	err := disk.WalkDir(at, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(disk.Address(p), "s3://data/"))
		}
		return err
	})
	slices.Sort(names)
	var want []string
	for key := range x.want {
		want = append(want, key)
	}
	slices.Sort(want)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("the source has %q, %v", names, err)
	}
}

// TestUploadLostAnswers loses the answers to the requests that make objects: they are found to be done.
func TestUploadLostAnswers(t *testing.T) {
	for _, dir := range []bool{false, true} {
		f, x := s3test.NewFake(t), newTarget(t, dir)
		var lost sync.Map
		f.After(func(r *http.Request) {
			made := r.Method == http.MethodPost && r.URL.Query().Has("uploadId") ||
				r.Method == http.MethodPut && !r.URL.Query().Has("uploadId")
			if _, again := lost.LoadOrStore(r.Method+r.URL.Path, true); made && !again {
				panic(http.ErrAbortHandler)
			}
		})
		if err := x.send(t.Context(), x.upload("run", nil)); err != nil {
			t.Fatal(err)
		}
		x.whole(t, f)
	}
}

// TestUploadGoesOn ends uploads at each of their requests. Another one of the same run sends the rest, or removes all.
func TestUploadGoesOn(t *testing.T) {
	for _, dir := range []bool{false, true} {
		for at := 1; ; at++ {
			f, x := s3test.NewFake(t), newTarget(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int64
			f.After(func(*http.Request) {
				if n.Add(1) == int64(at) {
					cancel()
				}
			})
			ids, noted := map[string]string{}, map[string]string{}
			u := x.upload("run", ids)
			u.Begun = func(key, id string) error { noted[key] = id; return nil }
			err := x.send(ctx, u)
			cancel()
			f.After(nil)
			if err == nil {
				x.whole(t, f)
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if at%2 == 0 {
				if err := x.Withdraw(t.Context(), x.upload("run", noted)); err != nil {
					t.Fatal(err)
				}
				if left := f.Keys(); len(left) > 0 && !slices.Contains(left, "a/new/"+ManifestName) {
					t.Errorf("request %d: left %q", at, left)
				}
				continue
			}
			f.Requests()
			if err := x.send(t.Context(), x.upload("run", noted)); err != nil {
				t.Fatalf("request %d: %v", at, err)
			}
			if keys := f.Keys(); len(keys) < len(x.want) {
				t.Errorf("request %d: %q", at, keys)
			}
		}
	}
}

// TestUploadOfChangedFiles continues uploads whose local files have other bytes of the same size by then, as a target
// that was made again has: none of the earlier bytes remain.
func TestUploadOfChangedFiles(t *testing.T) {
	for _, dir := range []bool{false, true} {
		for at := 1; ; at++ {
			f, x := s3test.NewFake(t), newTarget(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int64
			f.After(func(r *http.Request) {
				if n.Add(1) == int64(at) {
					cancel()
				}
			})
			u := x.upload("run", nil)
			err := x.Upload(ctx, u, x.root, x.files)
			cancel()
			f.After(nil)
			for _, file := range x.files {
				path, key := filepath.Join(x.root, file.Path), strings.TrimSuffix("a/new/"+file.Path, "/.")
				changed := bytes.Clone(x.want[key])
				slices.Reverse(changed)
				if err := os.WriteFile(path, changed, 0o644); err != nil {
					t.Fatal(err)
				}
				x.want[key] = changed
			}
			if err := x.send(t.Context(), x.upload("run", u.IDs)); err != nil {
				t.Fatalf("request %d: %v", at, err)
			}
			for key, want := range x.want {
				if !bytes.Equal(f.Object(key), want) {
					t.Errorf("request %d: %s has earlier bytes", at, key)
				}
			}
			if err == nil {
				break
			}
		}
	}
}

// TestUploadGoesOnWithoutSending checks that a finished directory costs requests, but no bytes.
func TestUploadGoesOnWithoutSending(t *testing.T) {
	f, x := s3test.NewFake(t), newTarget(t, true)
	u := x.upload("run", nil)
	if err := x.Upload(t.Context(), u, x.root, x.files); err != nil {
		t.Fatal(err)
	}
	f.Requests()
	if err := x.Upload(t.Context(), x.upload("run", u.IDs), x.root, x.files); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Requests() {
		if strings.HasPrefix(r, "PUT") && !strings.Contains(r, IncompleteName) || strings.HasPrefix(r, "POST") {
			t.Errorf("sent again: %s", r)
		}
	}
}

// TestUploadOfAnotherSize checks that a target whose objects have other sizes than the files is not published.
func TestUploadOfAnotherSize(t *testing.T) {
	for n := range 4 {
		dir, other := n%2 == 1, data([]int{999, 1 << 20}[n/2]) // less, and more
		f, x := s3test.NewFake(t), newTarget(t, dir)
		u := x.upload("run", nil)
		if err := x.Upload(t.Context(), u, x.root, x.files); err != nil {
			t.Fatal(err)
		}
		if dir {
			f.Put("a/new/small", other)
		} else {
			f.After(func(r *http.Request) { // between the last request that makes it and the one that looks at it
				if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
					f.Put("a/new", other)
				}
			})
		}
		err := x.Publish(t.Context(), u, x.files)
		if err == nil || !strings.Contains(err.Error(), "bytes") || f.Object("a/new/"+ManifestName) != nil {
			t.Errorf("directory %t: %v", dir, err)
		}
	}
}

// TestUploadTaken refuses targets that exist, also those of other uploads, and leaves them as they are.
func TestUploadTaken(t *testing.T) {
	for name, c := range map[string]struct {
		dir  bool
		key  string
		half string // or who wrote it
	}{"file": {false, "a/new", "(another program wrote it at 2026-01-02T03:04:05Z); kvferry does not overwrite it"},
		"report": {false, "a/new.kvferry-report.json", ""}, "directory": {true, "a/new/x", ""}, "object": {true, "a/new", ""},
		"half": {true, "a/new/" + IncompleteName, "aws s3 rm --recursive s3://data/a/new/"}} {
		f, x := s3test.NewFake(t), newTarget(t, c.dir)
		f.Put(c.key, []byte("x"))
		err := x.Check(t.Context(), "run")
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), c.half) {
			t.Errorf("%s: %v", name, err)
		}
		if err := x.Withdraw(t.Context(), x.upload("run", nil)); err != nil || len(f.Keys()) != 1 {
			t.Errorf("%s: %v, %q", name, err, f.Keys())
		}
	}
	f, x := s3test.NewFake(t), newTarget(t, false)
	u := x.upload("run", nil)
	if err := x.Upload(t.Context(), u, x.root, x.files); err != nil {
		t.Fatal(err)
	}
	f.Put("a/new", []byte("x")) // by another program meanwhile
	if err := x.Publish(t.Context(), u, x.files); !errors.Is(err, fs.ErrExist) || string(f.Object("a/new")) != "x" {
		t.Errorf("overwritten: %v", err)
	}
}

// TestUploadDisturbed: an object that another program makes during the upload is not taken for the target, or for a part
// of it.
func TestUploadDisturbed(t *testing.T) {
	for _, dir := range []bool{false, true} {
		f, x := s3test.NewFake(t), newTarget(t, dir)
		u := x.upload("run", nil)
		if err := x.Upload(t.Context(), u, x.root, x.files); err != nil {
			t.Fatal(err)
		}
		if dir {
			f.Put("a/new/stray", []byte("x"))
		} else {
			f.Before(func(_ http.ResponseWriter, r *http.Request) bool { // after Publish has looked
				if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
					f.Put("a/new", []byte("x"))
				}
				return false
			})
		}
		err := x.Publish(t.Context(), u, x.files)
		if dir && (err == nil || !strings.Contains(err.Error(), "another program writes to this directory") ||
			f.Object("a/new/"+ManifestName) != nil) {
			t.Errorf("a directory: %v", err)
		}
		if !dir && (!errors.Is(err, fs.ErrExist) || string(f.Object("a/new")) != "x") {
			t.Errorf("a file: %v", err)
		}
	}
}

// TestUploadOvertaken: an upload that another one has overtaken leaves the target of the other, and its report.
func TestUploadOvertaken(t *testing.T) {
	f, x := s3test.NewFake(t), newTarget(t, false)
	slow, fast := x.upload("slow", nil), x.upload("fast", nil)
	if err := x.Upload(t.Context(), slow, x.root, x.files); err != nil {
		t.Fatal(err)
	}
	slow.Report = []byte("another report")
	if err := x.send(t.Context(), fast); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("another run was faster: s3://data/a/new: already exists (kvferry, process %d on ", os.Getpid())
	if err := x.Publish(t.Context(), slow, x.files); !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), want) ||
		!strings.Contains(err.Error(), "wrote it at 2026-01-02T03:04:05Z); kvferry does not overwrite it: name another address, or remove it") {
		t.Errorf("published over another: %v", err)
	}
	if err := x.Withdraw(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	x.whole(t, f)
}

// TestUploadOfTwo starts an upload of a directory while another one is under way, before and after its check, and
// writes there while it is under way: the errors name who does it.
func TestUploadOfTwo(t *testing.T) {
	f, x := s3test.NewFake(t), newTarget(t, true)
	first, second := x.upload("first", nil), x.upload("second", nil)
	if err := x.Upload(t.Context(), first, x.root, x.files); err != nil {
		t.Fatal(err)
	}
	by := fmt.Sprintf("s3://data/a/new: has the unfinished upload of another run (kvferry, process %d on ", os.Getpid())
	for name, err := range map[string]error{"check": x.Check(t.Context(), "second"),
		"upload": x.Upload(t.Context(), second, x.root, x.files)} {
		if !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), by) || !strings.Contains(err.Error(), "continue it there with --resume, or remove it with aws s3 rm --recursive s3://data/a/new/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Put("a/new/other", nil)
	if err := x.Publish(t.Context(), first, x.files); err == nil || !strings.Contains(err.Error(), "such as s3://data/a/new/other (another program wrote it at 2026-01-02T03:04:05Z): stop it") {
		t.Errorf("%v", err)
	}
}

// TestUploadManifest changes an upload, or leaves it half done: it is not read.
func TestUploadManifest(t *testing.T) {
	for want, change := range map[string]func(f *s3test.Fake){
		"small: does not exist, but is listed in the manifest":  func(f *s3test.Fake) { f.Delete("a/new/small") },
		"small: differs from the object listed in the manifest": func(f *s3test.Fake) { f.Put("a/new/small", data(999)) },
		"more: is not listed in the manifest":                   func(f *s3test.Fake) { f.Put("a/new/more", nil) },
		"its upload is not complete":                            func(f *s3test.Fake) { f.Put("a/new/"+IncompleteName, nil) },
		"are no manifest":                                       func(f *s3test.Fake) { f.Put("a/new/"+ManifestName, nil) },
		"version 9: written by a newer":                         func(f *s3test.Fake) { f.Put("a/new/"+ManifestName, []byte(`{"kvferry_manifest":9}`)) },
		"invalid character":                                     func(f *s3test.Fake) { f.Put("a/new/"+ManifestName, []byte("x")) },
	} {
		f, x := s3test.NewFake(t), newTarget(t, true)
		if err := x.send(t.Context(), x.upload("run", nil)); err != nil {
			t.Fatal(err)
		}
		change(f)
		_, err := disk.ReadDir(mounted(t, x.Address(), quick))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestUploadRefused names what the server refuses, and what to do.
func TestUploadRefused(t *testing.T) {
	s3test.NewFake(t)
	x := newTarget(t, true)
	x.s3.bucket = "other"
	if err := x.Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "there is no bucket other") {
		t.Errorf("%v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	if err := newTarget(t, true).Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "needs s3:PutObject") {
		t.Errorf("%v", err)
	}
	for address, want := range map[string]string{"s3://data": "names only a bucket", "s3:///x": "no name of a bucket",
		"s3://data/a//b":          "empty or dotted parts",
		"https://u:secret@host/x": "is not written"} {
		_, err := NewTarget(address, true, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestUploadRate keeps a limit.
func TestUploadRate(t *testing.T) {
	f, x := s3test.NewFake(t), newTarget(t, true)
	x.files = slices.DeleteFunc(x.files, func(f File) bool { return f.Size > 1000 })
	delete(x.want, "a/new/db/large")
	u := x.upload("run", nil)
	u.Rate = 4000
	x.files = append(x.files, File{"db/small2", 1000})
	if err := os.WriteFile(filepath.Join(x.root, "db/small2"), data(1000), 0o644); err != nil {
		t.Fatal(err)
	}
	x.want["a/new/db/small2"] = data(1000)
	start := time.Now()
	if err := x.send(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 200*time.Millisecond {
		t.Errorf("2,000 bytes took %s", d)
	}
	x.whole(t, f)
}

// TestUploadToServer uploads to a real server.
func TestUploadToServer(t *testing.T) {
	s3test.NewServer(t)
	for _, dir := range []bool{false, true} {
		x := filled(t, newTarget(t, dir).Target, leastPart) // a server refuses small parts
		x.key += fmt.Sprint(dir)
		half := x.upload("run", map[string]string{})
		if err := x.Upload(t.Context(), half, x.root, x.files); err != nil {
			t.Fatal(err)
		}
		if err := x.Check(t.Context(), "other"); dir && !errors.Is(err, fs.ErrExist) {
			t.Errorf("a half upload: %v", err)
		}
		if err := x.send(t.Context(), x.upload("run", half.IDs)); err != nil {
			t.Fatal(err)
		}
		if err := x.Check(t.Context(), "other"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a whole upload: %v", err)
		}
		clear(x.want)
		for _, f := range x.files {
			x.want[strings.TrimSuffix(x.key+"/"+f.Path, "/.")] = nil
		}
		x.readBack(t)
		x.key += "2"
		half = x.upload("run", map[string]string{})
		if err := errors.Join(x.Upload(t.Context(), half, x.root, x.files), x.Withdraw(t.Context(), half),
			x.Check(t.Context(), "other")); err != nil {
			t.Errorf("withdrawn: %v", err)
		}
		if left, err := x.s3.begun(t.Context(), x.key); err != nil || len(left) > 0 {
			t.Errorf("unfinished: %q, %v", left, err)
		}
	}
}
