package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
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

// data returns n bytes that differ everywhere.
func data(n int) []byte {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{1})
	rnd.Read(b)
	return b
}

// pieceSize is the size of pieces of a cache of the usual size.
const pieceSize = maxPiece

// quick are options of tests: a passing fault costs no time.
var quick = Options{Memory: 8 << 20, Tries: 4, Pause: time.Microsecond, Idle: 20 * time.Second}

// mounted mounts an address until the end of the test, and returns its path.
func mounted(t testing.TB, address string, o Options) string {
	t.Helper()
	p, unmount, err := Mount(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unmount)
	return p
}

// opened opens the object at an address.
func opened(t testing.TB, address string, o Options) *disk.File {
	t.Helper()
	f, err := disk.Open(mounted(t, address, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestReadWithFaults reads an object forwards, at random and from several goroutines, while every third request fails
// in some way.
func TestReadWithFaults(t *testing.T) {
	want := data(3*pieceSize + 12_345)
	partial := func(w http.ResponseWriter, r *http.Request, from, to int) {
		w.Header().Set("Content-Length", fmt.Sprint(to+1-from))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(want)))
		w.Header().Set("ETag", r.Header.Get("If-Match"))
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
		w.WriteHeader(http.StatusPartialContent)
	}
	faults := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"none": func(http.ResponseWriter, *http.Request) bool { return false },
		"503": func(w http.ResponseWriter, r *http.Request) bool {
			s3test.Fail(w, r, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			return true
		},
		"broken": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"cut": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				return false
			}
			var from, to int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
			partial(w, r, from, to)
			w.Write(want[from : from+(to+1-from)/2])
			panic(http.ErrAbortHandler)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) bool { // a cache on the way has another range
			var from, to int
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
			if r.Method == http.MethodHead || from == 0 {
				return false
			}
			partial(w, r, from-1, to-1)
			w.Write(want[from-1 : to])
			return true
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			s := s3test.NewFake(t)
			s.Put("a/object", want)
			var n atomic.Int64
			s.Before(func(w http.ResponseWriter, r *http.Request) bool { return n.Add(1)%3 == 1 && fault(w, r) })
			f := opened(t, "s3://data/a/object", quick)
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			var all sync.WaitGroup
			for seed := range uint64(3) {
				all.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, 2))
					for range 50 {
						off := rnd.IntN(len(want))
						b := make([]byte, rnd.IntN(2*pieceSize))
						n, err := f.ReadAt(b, int64(off))
						end := min(off+len(b), len(want))
						if !bytes.Equal(b[:n], want[off:end]) || (err == io.EOF) != (n < len(b)) {
							t.Errorf("%d bytes at %d: %d, %v", len(b), off, n, err)
						}
					}
				})
			}
			all.Wait()
			if name != "none" && n.Load() < 3 {
				t.Errorf("only %d requests", n.Load())
			}
		})
	}
}

// TestStall reads from a server that stops in the middle of an answer and keeps the connection.
func TestStall(t *testing.T) {
	want := data(1000)
	s := s3test.NewFake(t)
	s.Put("object", want)
	var stalled atomic.Bool
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead || stalled.Swap(true) {
			return false
		}
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("ETag", r.Header.Get("If-Match"))
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(want[:10])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	o := quick
	o.Idle = 200 * time.Millisecond
	if got, err := io.ReadAll(opened(t, "s3://data/object", o)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if !stalled.Load() {
		t.Error("no answer stalled")
	}
}

// TestChange reads objects that are replaced, grow or vanish: each is named, and no byte of the other version is read.
func TestChange(t *testing.T) {
	old := data(3 * pieceSize)
	for name, change := range map[string]func(s *s3test.Fake){
		"replaced": func(s *s3test.Fake) { s.Put("d/b", slices.Concat(old[1:], old[:1])) },
		"grown":    func(s *s3test.Fake) { s.Put("d/b", slices.Concat(old, old[:1])) },
		"removed":  func(s *s3test.Fake) { s.Delete("d/b") },
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.NewFake(t)
			s.Put("d/a", old)
			s.Put("d/b", old)
			dir := mounted(t, "s3://data/d", quick)
			if _, err := disk.ReadDir(dir); err != nil {
				t.Fatal(err)
			}
			var sources disk.Sources
			f, err := sources.Open(filepath.Join(dir, "b"))
			if err == nil {
				_, err = f.ReadAt(make([]byte, 10), 0)
			}
			if err := errors.Join(err, sources.Check()); err != nil {
				t.Fatal(err)
			}
			change(s)
			for what, err := range map[string]error{"check": sources.Check(),
				"read": second(f.ReadAt(make([]byte, 10), 2*pieceSize))} {
				var changed *disk.ChangedError
				if !errors.As(err, &changed) || disk.Address(changed.Path) != "s3://data/d/b" || !disk.IsAccess(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := disk.Stat(filepath.Join(dir, "b")); err != nil {
				t.Errorf("the first description is no longer used: %v", err)
			}
		})
	}
}

func second(_ int, err error) error { return err }

// TestDirectory lists a directory in parts, one of which fails at first, and describes what is in it without more
// requests.
func TestDirectory(t *testing.T) {
	s := s3test.NewFake(t)
	s.PerPage = 2
	for _, key := range []string{"d/db0/1.sst", "d/db0/CURRENT", "d/db0/x/y/z", "d/db1/CURRENT", "d/info", "d/marker/", "d2/other"} {
		s.Put(key, []byte(key))
	}
	lists := 0
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("list-type") {
			lists++
		}
		if lists == 2 {
			lists++
			s3test.Fail(w, r, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
			return true
		}
		return false
	})
	root := mounted(t, "s3://data/d/", quick)
	names := func(dir string) string {
		entries, err := disk.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, fs.FormatDirEntry(e))
		}
		return strings.Join(out, " ")
	}
	if got, want := names(root), "d db0/ d db1/ - info"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Requests()
	if got, want := names(filepath.Join(root, "db0")), "- 1.sst - CURRENT d x/"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st, err := disk.Stat(filepath.Join(root, "db0", "1.sst"))
	if err != nil || st.Size() != 11 || !st.Mode().IsRegular() || st.ModTime().IsZero() {
		t.Errorf("%+v, %v", st, err)
	}
	for _, name := range []string{"db0/none", "db2", "db0/1.ss"} {
		if _, err := disk.Stat(filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := disk.ReadFile(filepath.Join(root, "db0", "x", "y", "z")); err != nil || string(b) != "d/db0/x/y/z" {
		t.Errorf("%s, %v", b, err)
	}
	if got := s.Requests(); len(got) != 1 {
		t.Errorf("requests for what is known: %q", got)
	}
	if _, err := disk.Create(filepath.Join(root, "new")); err == nil {
		t.Error("a file was made")
	}
	if real, err := disk.EvalSymlinks(root); err != nil || real != "s3://data/d" {
		t.Errorf("%s, %v", real, err)
	}
	if bucket := mounted(t, "s3://data", quick); names(bucket) != "d d/ d d2/" {
		t.Errorf("the bucket has %s", names(bucket))
	}
}

// TestRefused lists the errors that a first request meets.
func TestRefused(t *testing.T) {
	s := s3test.NewFake(t)
	for name, c := range map[string]struct {
		address string
		set     [2]string
		o       Options
		want    string
	}{
		"wrong credentials": {"s3://data/x", [2]string{"AWS_ACCESS_KEY_ID", "other"}, quick, "Access Key Id you provided does not exist in our records (InvalidAccessKeyId): kvferry needs"},
		"no credentials":    {"s3://data/x", [2]string{"AWS_ACCESS_KEY_ID", ""}, quick, "no credentials found (the environment: none; the profile: "},
		"anonymous":         {"s3://data/x", [2]string{}, Options{Anonymous: true}, "InvalidAccessKeyId"},
		"no bucket":         {"s3://none/x", [2]string{}, quick, "there is no bucket none at 127.0.0.1"},
		"nothing there":     {"s3://data/x", [2]string{}, quick, fs.ErrNotExist.Error()},
		"nobody listens":    {"s3://data/x", [2]string{"AWS_ENDPOINT_URL", "http://127.0.0.1:1"}, quick, "(3 tries): check the address"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.set[0] != "" {
				t.Setenv(c.set[0], c.set[1])
			}
			_, err := disk.Stat(mounted(t, c.address, c.o))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.address) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	for address, want := range map[string]string{"s3://": "no name of a bucket", "https:///x": "no name of a bucket",
		"http://host/": "names no file", "s3://data/a//b": "keys as paths",
		"https://user:sec/ret@host/x?sig=secret": "https://…@host/x?sig=…: invalid URL", "https://host:port/x": "invalid URL",
		"https://…@host/x": "put the user or the value back", "https://host/x?sig=…": "put the user or the value back"} {
		_, _, err := Mount(t.Context(), address, quick)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, _, err := Mount(t.Context(), "s3://data", Options{Endpoint: "http://host/path"}); err == nil {
		t.Error("an endpoint with a path is accepted")
	}
	f, err := newFiles(t.Context(), "s3://data/x", quick)
	if err != nil {
		t.Fatal(err)
	}
	err = f.explain("stat", "s3://data/x", &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true})
	if want := "no answer from " + s.URL + " (--s3-endpoint, "; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	s.Put("x", data(10))
	ctx, cancel := context.WithCancel(t.Context())
	p, unmount, err := Mount(ctx, "s3://data/x", quick)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := disk.Stat(p); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	unmount()
	if disk.IsMounted(p) {
		t.Error("still mounted")
	}
}

// TestRegion asks for a bucket in a wrong region: the error names the right one, and how to choose it. An answer to HEAD
// has no body.
func TestRegion(t *testing.T) {
	s := s3test.NewFake(t)
	t.Setenv("AWS_REGION", "us-west-1")
	const want = ": the bucket data is in the region eu-central-1, the request was for us-west-1: use --s3-region eu-central-1 or AWS_REGION=eu-central-1"
	for code, status := range map[string]int{"AuthorizationHeaderMalformed": 400, "PermanentRedirect": 301, "AccessDenied": 403,
		"IllegalLocationConstraintException": 400} {
		s.Before(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("x-amz-bucket-region", "eu-central-1")
			s3test.Fail(w, r, status, code, "The region is wrong")
			return true
		})
		_, err := disk.Stat(mounted(t, "s3://data/x", quick))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
		to, err := NewTarget("s3://data/new", false, quick)
		if err == nil {
			err = to.Check(t.Context(), "run")
		}
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: the target: %v", code, err)
		}
	}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // a region in the body alone
		if r.Method == http.MethodHead {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Message>no</Message><Region>eu-central-1</Region></Error>")
		return true
	})
	if _, err := disk.ReadDir(mounted(t, "s3://data/x", quick)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("in the body: %v", err)
	}
}

// TestTraffic compares the counts of a reader and of an upload with those of the server.
func TestTraffic(t *testing.T) {
	s := s3test.NewFake(t)
	var n Traffic
	o := quick
	o.Traffic = &n
	if n.Counts() != nil || (*Traffic)(nil).Counts() != nil {
		t.Error("counts without a request")
	}
	s.Put("object", data(10*pieceSize))
	f := opened(t, "s3://data/object", o)
	if _, err := f.ReadAt(make([]byte, 10*pieceSize), 0); err != nil {
		t.Fatal(err)
	}
	if got := n.Counts(); got.Requests != int64(len(s.Requests())) || got.Read != 10*pieceSize || got.Written != 0 {
		t.Errorf("%s", got)
	}
	x := newTarget(t, false)
	n = Traffic{}
	x.Target, _ = NewTarget("s3://data/new", false, o)
	if err := x.send(t.Context(), x.upload("run", nil)); err != nil {
		t.Fatal(err)
	}
	size := int64(len(s.Object("new")))
	if got := n.Counts(); got.Requests != int64(len(s.Requests())) || got.Written < size || got.Written > size+4096 ||
		!strings.Contains(got.String(), " written") {
		t.Errorf("%s for %d bytes", got, size)
	}
}

// TestAhead counts requests: a jump costs one piece, and a reader that goes forward few and long requests. The cache
// holds no more than its memory.
func TestAhead(t *testing.T) {
	want := data(24 * pieceSize)
	s := s3test.NewFake(t)
	s.Put("object", want)
	f := opened(t, "s3://data/object", Options{Memory: usualHeld * pieceSize})
	s.Requests()
	b := make([]byte, 100)
	if _, err := f.ReadAt(b, 10*pieceSize+5); err != nil || !bytes.Equal(b, want[10*pieceSize+5:][:100]) {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Requests()), fmt.Sprintf("[GET object bytes=%d-%d]", 10*pieceSize, 11*pieceSize-1); got != want {
		t.Errorf("a jump: %s, want %s", got, want)
	}
	for off := 0; off < len(want); off += 1 << 10 {
		if _, err := f.ReadAt(b, int64(off)); err != nil || !bytes.Equal(b, want[off:off+100]) {
			t.Fatalf("at %d: %v", off, err)
		}
	}
	if n := len(s.Requests()); n > 8 {
		t.Errorf("%d requests for 24 pieces", n)
	}
}

// together makes a server answer no request of an object until n are under way. It returns a function that fails the
// test if that never happened.
func together(t *testing.T, s *s3test.Fake, n int64) (check func()) {
	var waiting atomic.Int64
	var once sync.Once
	all, late := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(10*time.Second, func() { close(late) }) // the test fails
	t.Cleanup(func() { timer.Stop() })
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.Header.Get("Range") != "" {
			if waiting.Add(1) == n {
				once.Do(func() { close(all) })
			}
			select {
			case <-all:
			case <-late:
			}
			waiting.Add(-1)
		}
		return false
	})
	return func() {
		t.Helper()
		select {
		case <-all:
		default:
			t.Errorf("never %d requests at the same time", n)
		}
	}
}

// TestAheadTogether reads forward, and announces places: several requests are under way at the same time.
func TestAheadTogether(t *testing.T) {
	s := s3test.NewFake(t)
	const pieces = 256
	want := data(pieces * pieceSize)
	s.Put("object", want)
	f := opened(t, "s3://data/object", Options{Memory: pieces / 4 * pieceSize}) // not all is read before together
	b := make([]byte, pieceSize)
	read := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := f.ReadAt(b, int64(i)*pieceSize); err != nil || !bytes.Equal(b, want[i*pieceSize:][:pieceSize]) {
				t.Fatalf("piece %d: %v", i, err)
			}
		}
	}
	read(0, 24)
	check := together(t, s, 3)
	read(24, pieces)
	check()
	s.Before(nil)
	f = opened(t, "s3://data/object", Options{Memory: pieces * pieceSize})
	check = together(t, s, 8)
	for i := range int64(8) {
		disk.Ahead(f.Name(), i*20*pieceSize+5, 10)
	}
	disk.Ahead(f.Name(), 1<<40, 1)
	disk.Ahead(f.Name()+"-none", 0, 1)
	s.Requests()
	for i := range 8 {
		read(i*20, i*20+1)
	}
	check()
	if n := s.Requests(); len(n) > 8 {
		t.Errorf("%q for 8 announced places", n)
	}
}

// TestAheadOfHeld reads forward over pieces that another reader has left: they do not end reading ahead.
func TestAheadOfHeld(t *testing.T) {
	s := s3test.NewFake(t)
	const pieces = 240
	want := data(pieces * pieceSize)
	s.Put("object", want)
	f := opened(t, "s3://data/object", Options{Memory: 256 * pieceSize})
	b := make([]byte, pieceSize)
	for i := 20; i < pieces; i += 20 {
		if _, err := f.ReadAt(b[:10], int64(i)*pieceSize); err != nil {
			t.Fatal(err)
		}
	}
	s.Requests()
	s.Sent()
	for i := range pieces {
		if _, err := f.ReadAt(b, int64(i)*pieceSize); err != nil || !bytes.Equal(b, want[i*pieceSize:][:pieceSize]) {
			t.Fatalf("piece %d: %v", i, err)
		}
	}
	if n, sent := len(s.Requests()), s.Sent(); n > 24 || sent > (pieces-11)*pieceSize {
		t.Errorf("%d requests and %d bytes for %d pieces, of which 11 were held", n, sent, pieces)
	}
}

// TestAheadOfStale fills the cache with pieces that no reader comes back to: they do not end reading ahead.
func TestAheadOfStale(t *testing.T) {
	const held, pieces = 64, 384
	s := s3test.NewFake(t)
	s.Put("object", data(pieces*minPiece))
	f := opened(t, "s3://data/object", Options{Memory: held * minPiece})
	b := make([]byte, minPiece)
	for i := range held {
		if _, err := f.ReadAt(b[:10], int64(pieces-1-2*i)*minPiece); err != nil {
			t.Fatal(err)
		}
	}
	s.Requests()
	for i := range int64(pieces - 2*held) {
		if _, err := f.ReadAt(b, i*minPiece); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n > 160 {
		t.Errorf("%d requests for %d pieces", n, pieces-2*held)
	}
}

// TestKept reads an object twice that does not fit into the cache: it comes over the network once, unless the disk has no
// room for it, or fails. Nothing is kept of one that fits.
func TestKept(t *testing.T) {
	const held, pieces = 16, 64
	want := data(pieces*minPiece + 99)
	s := s3test.NewFake(t)
	s.Put("object", want)
	size := int64(len(want))
	for name, c := range map[string]struct {
		memory, free, least, most int64
		change                    func(k *kept)
	}{
		"kept":        {held * minPiece, 2 * size, size, size, nil},
		"no room":     {held * minPiece, 2*size - 1, size * 3 / 2, 3 * size, nil},
		"fits":        {4 * pieces * minPiece, 2 * size, size, size, nil},
		"a full disk": {held * minPiece, 2 * size, size * 3 / 2, 3 * size, func(k *kept) { k.file.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			defer disk.FakeSpace(func(string) (disk.Space, error) { return disk.Space{Free: c.free}, nil })()
			p, unmount, err := Mount(t.Context(), "s3://data/object", Options{Memory: c.memory})
			if err != nil {
				t.Fatal(err)
			}
			f, err := disk.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			f.Keep(t.TempDir())
			f.Keep(t.TempDir())
			k := f.Sparse().(*handle).o.kept.Load()
			if c.change != nil {
				c.change(k)
			}
			s.Sent()
			for range 2 {
				b := make([]byte, 10_000)
				for off := 0; off < len(want); off += len(b) {
					n, err := f.ReadAt(b, int64(off))
					if err != nil && err != io.EOF || !bytes.Equal(b[:n], want[off:min(off+len(b), len(want))]) {
						t.Fatalf("at %d: %d bytes, %v", off, n, err)
					}
				}
			}
			if n := s.Sent(); n < c.least || n > c.most {
				t.Errorf("%d bytes sent of an object of %d", n, size)
			}
			unmount()
			if k.open() != nil {
				t.Error("the temporary file is still open")
			}
		})
	}
}

// TestSparse reads pieces that follow each other without reading ahead.
func TestSparse(t *testing.T) {
	s := s3test.NewFake(t)
	s.Put("object", data(64*pieceSize))
	r := opened(t, "s3://data/object", quick).Sparse()
	for i := range int64(4) {
		if _, err := r.ReadAt(make([]byte, 100), i*pieceSize); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.ReadAt(make([]byte, 2*pieceSize), 4*pieceSize); err != nil {
		t.Fatal(err)
	}
	if n := s.Sent(); n != 6*pieceSize {
		t.Errorf("%d bytes for 6 pieces of %d", n, pieceSize)
	}
}

// TestCacheIsBounded reads a large object with many readers and few pieces.
func TestCacheIsBounded(t *testing.T) {
	want := data(40 * pieceSize)
	s := s3test.NewFake(t)
	s.Put("object", want)
	f, err := newFiles(t.Context(), "s3://data/object", Options{Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.Open("object")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for from := range 20 {
		all.Go(func() {
			b := make([]byte, 1000)
			for off := from * 2 * pieceSize; off < (from+1)*2*pieceSize; off += 10_000 {
				n := min(len(b), len(want)-off)
				if _, err := h.ReadAt(b[:n], int64(off)); err != nil || !bytes.Equal(b[:n], want[off:off+n]) {
					t.Errorf("at %d: %v", off, err)
					return
				}
			}
		})
	}
	all.Wait()
	c := f.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held > c.max || len(c.pieces) != c.held || c.idle.Len() != c.held || len(c.free) > c.max {
		t.Errorf("%d of %d pieces, %d known, %d idle, %d free", c.held, c.max, len(c.pieces), c.idle.Len(), len(c.free))
	}
}

// TestWeb reads a file from a web server.
func TestWeb(t *testing.T) {
	want := data(2*pieceSize + 10)
	var tag atomic.Pointer[string]
	first := `"one"`
	tag.Store(&first)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/d/dump.rdb":
			if r.URL.RawQuery != "signature=secret" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("ETag", *tag.Load())
			http.ServeContent(w, r, "", time.Unix(1700000000, 0), bytes.NewReader(want))
		case "/empty":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(nil))
		case "/nothing", "/less":
			w.Header().Set("Content-Range", map[string]string{"/nothing": "bytes */0", "/less": "bytes */10"}[r.URL.Path])
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		case "/whole":
			w.Write(want)
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	p := mounted(t, srv.URL+"/d/dump.rdb?signature=secret", quick)
	if p != srv.URL+"/d/dump.rdb" {
		t.Errorf("the path is %s", p)
	}
	f, err := disk.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := f.Stat(); err != nil || st.Size() != int64(len(want)) || st.Name() != "dump.rdb" ||
		st.ModTime().Unix() != 1700000000 {
		t.Errorf("%+v, %v", st, err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for name, want := range map[string]string{"/whole": "curl -fsSL URL |", "/none": fs.ErrNotExist.Error(),
		"/less": "416 Requested Range Not Satisfiable", "/d/dump.rdb": "403 Forbidden"} {
		if _, err := disk.Stat(mounted(t, srv.URL+name, quick)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"/empty", "/nothing"} {
		if st, err := disk.Stat(mounted(t, srv.URL+name, quick)); err != nil || st.Size() != 0 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	second := `W/"two"`
	tag.Store(&second)
	f, err = disk.Open(mounted(t, srv.URL+"/d/dump.rdb?signature=secret", quick))
	if err != nil {
		t.Fatal(err)
	}
	tag.Store(&first)
	var changed *disk.ChangedError
	if _, err := f.ReadAt(make([]byte, 10), 0); !errors.As(err, &changed) || strings.Contains(err.Error(), "secret") {
		t.Errorf("another version: %v", err)
	}
}

// TestApart mounts addresses at the same time that are alike: each is read from its own place.
func TestApart(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), strings.NewReader(r.RequestURI))
	}))
	defer web.Close()
	one, other := s3test.NewFake(t), s3test.NewFake(t)
	var all []struct{ path, want string }
	add := func(address, key, want string, o Options) {
		all = append(all, struct{ path, want string }{disk.Join(mounted(t, address, o), key), want})
	}
	for _, uri := range []string{"/a.rdb", "/b.rdb", "/a.rdb?versionId=1", "/a.rdb?versionId=2", "/d/a.rdb", "/d//a.rdb",
		"/d/../a.rdb", "/d/./a.rdb/", "/a%2Fb", "/50%25"} {
		add(web.URL+uri, "", uri, quick)
	}
	for name, s := range map[string]*s3test.Fake{"one": one, "other": other} {
		o := quick
		o.Endpoint = s.URL
		for _, key := range []string{"dump/a", "dump/x/a", "x/dump/a", "dump-50%/x", "a%2Fb?c=d"} {
			s.Put(key, []byte(name+" "+key))
			add("s3://data/"+key, "", name+" "+key, o)
		}
		add("s3://data/dump", "x/a", name+" dump/x/a", o)
		add("s3://data/dump/x", "a", name+" dump/x/a", o)
	}
	paths := map[string]bool{}
	for _, at := range all {
		if b, err := disk.ReadFile(at.path); err != nil || string(b) != at.want {
			t.Errorf("%s has %q, %v, want %q", at.path, b, err, at.want)
		}
		if paths[at.path] {
			t.Errorf("%s twice", at.path)
		}
		paths[at.path] = true
	}
	if !paths[web.URL+"/a.rdb"] || !paths[web.URL+"/b.rdb"] || !paths[web.URL+"#2/a.rdb"] {
		t.Errorf("%v", paths)
	}
}

// TestShown checks what is left out of words of command lines.
func TestShown(t *testing.T) {
	for word, want := range map[string]string{
		"https://h/a@b.rdb":                           "https://h/a@b.rdb",
		"https://user:pw@h/a.rdb":                     "https://…@h/a.rdb",
		"https://token@h/a@b.rdb?a=1&sig=x%3D&flag#f": "https://…@h/a@b.rdb?a=…&sig=…&…",
		"rdb:http://h:8080/a?sig=x":                   "rdb:http://h:8080/a?sig=…",
		"--against=aof+x:https://u:p@h/a?s=1":         "--against=aof+x:https://…@h/a?s=…",
		"--s3-endpoint=http://u:p@h:9000":             "--s3-endpoint=http://…@h:9000",
		"https://u:p/w?x@h/a?s=1":                     "https://…@h/a?s=…",
		"s3://KEY:secret@bucket/a?b=c":                "s3://…@bucket/a?b=c",
		"--against=rdb:redis://u:p@h/1":               "--against=rdb:redis://…@h/1",
		"redis://user@h/1":                            "redis://user@h/1",
		"REDIS://u:p@h/1":                             "REDIS://…@h/1",
		"RDB:HTTPS://u:p@h/a?sig=x":                   "RDB:HTTPS://…@h/a?sig=…",
		"redis://:p/w?@x@h/1":                         "redis://…@h/1",
		"redis://h/1?PassWord=x&db=1":                 "redis://h/1?PassWord=…&db=1",
		"gs://b/k?a=1;X-Goog-Signature=x":             "gs://b/k?a=1;X-Goog-Signature=…",
		"unix:///run/x.sock?db=1":                     "unix:///run/x.sock?db=1",
		"s3://bucket/a:b@c":                           "s3://bucket/a:b@c",
		"a:b//c:d@e://f:g@h":                          "a:b//c:d@e://f:g@h",
		"s3://bucket/a?b=c":                           "s3://bucket/a?b=c",
		"/data/https://u:p@h/a?s=1":                   "/data/https://u:p@h/a?s=1",
	} {
		if got := Shown(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// TestProfile finds credentials, region and endpoint in the files of a profile.
func TestProfile(t *testing.T) {
	s := s3test.NewFake(t)
	s.Put("x", data(10))
	dir := t.TempDir()
	config, credentials := filepath.Join(dir, "config"), filepath.Join(dir, "credentials")
	err := errors.Join(os.WriteFile(
		config, []byte("[default]\nregion = here\n[profile other]\nregion = there\nendpoint_url = "+s.URL+"\n"), 0o600),
		os.WriteFile(credentials, []byte("[other]\naws_access_key_id = "+s3test.AccessKey+"\naws_secret_access_key = "+
			s3test.SecretKey+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": credentials,
		"AWS_PROFILE": "other", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL": ""} {
		t.Setenv(name, value)
	}
	if st, err := disk.Stat(mounted(t, "s3://data/x", quick)); err != nil || st.Size() != 10 {
		t.Errorf("%v, %v", st, err)
	}
	if got := profile(); got != (settings{"there", s.URL}) {
		t.Errorf("%+v", got)
	}
	t.Setenv("AWS_PROFILE", "")
	if got := profile(); got != (settings{"here", ""}) {
		t.Errorf("the default: %+v", got)
	}
}
