package object

import (
	"cmp"
	"context"
	"crypto/md5" // of ETags
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/pace"
)

const (
	// leastPart is the usual size of the parts of an object, of which it has mostParts at most.
	leastPart = 16 << 20
	mostParts = 10_000
	partUnit  = 1 << 20
	// writeIdle replaces Options.Idle: to join parts takes a server some time.
	writeIdle = 5 * time.Minute
	// leastRequests are under way at the same time, however few workers there are.
	leastRequests = 4
	// chunkBytes is sent at a time with a limit of the rate.
	chunkBytes = 32 << 10
)

// Target is the address that a finished file or directory is uploaded to.
type Target struct {
	o   Options
	s3  *s3
	key string
	dir bool
	// least is the size of the parts of an object, and of the files that are sent whole.
	least int64
}

// NewTarget returns the target at an s3:// address, for a file or a directory. It makes no request.
func NewTarget(address string, dir bool, o Options) (*Target, error) {
	if o.Idle == 0 {
		o.Idle = writeIdle
	}
	o = o.orDefault()
	if !strings.HasPrefix(address, "s3://") {
		return nil, fmt.Errorf("%s: a web server is not written: write s3://bucket/… or a path of the local disk", Shown(address))
	}
	s, key, err := startOfS3(address, &o)
	if err == nil && key == "" {
		err = fmt.Errorf("%s: names only a bucket: write s3://bucket/directory or s3://bucket/file", address)
	}
	if err != nil {
		return nil, err
	}
	s.needs = "s3:PutObject, s3:AbortMultipartUpload, s3:DeleteObject, s3:GetObject, s3:ListBucket and s3:ListBucketMultipartUploads"
	return &Target{o: o, s3: s, key: key, dir: dir, least: leastPart}, nil
}

// Address returns the address, which has no secrets.
func (t *Target) Address() string { return t.s3.address(t.key) }

// LocalName returns a name for files of the local disk that belong to the target.
func (t *Target) LocalName() string {
	return "s3-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:/\`, r) {
			return '-'
		}
		return r
	}, t.s3.bucket+"/"+t.key)
}

// Removal returns the command line of the AWS tools that removes the target.
func (t *Target) Removal() string {
	if t.dir {
		return "aws s3 rm --recursive " + t.Address() + "/"
	}
	return "aws s3 rm " + t.Address()
}

// ExistsError means that a target exists, which is not overwritten. It is an fs.ErrExist.
type ExistsError struct {
	Address string
	Half    bool   // it is the unfinished upload of another run
	Writer  string // who made it, and when; "" if that is unknown
	Removal string // the command that removes it
}

// Error names the target and its writer, and what to do.
func (e *ExistsError) Error() string {
	by := ""
	if e.Writer != "" {
		by = " (" + e.Writer + ")"
	}
	if e.Half {
		return fmt.Sprintf("%s: has the unfinished upload of another run%s: while that run works, name another address; if it stopped, continue it there with --resume, or remove it with %s",
			e.Address, by, e.Removal)
	}
	return fmt.Sprintf("%s: already exists%s; kvferry does not overwrite it: name another address, or remove it", e.Address, by)
}

// Unwrap returns fs.ErrExist.
func (e *ExistsError) Unwrap() error { return fs.ErrExist }

// File is a file of a target: its path below the directory, with slashes, or "." for a single file.
type File struct {
	Path string
	Size int64
}

// Upload is the state of an upload. The processes that work on one have the same Run.
type Upload struct {
	Run string
	// IDs are the objects in parts that are begun, by key. Begun notes another one, before its first part is sent.
	IDs   map[string]string
	Begun func(key, id string) error
	// Sent is called with the bytes that the server has, as their number grows; it may fall when a request is repeated.
	Sent    func(n int64)
	Rate    int64  // bytes per second; 0: no limit
	Workers int    // of the command: there are twice as many requests at the same time, or leastRequests
	Report  []byte // becomes an object beside the target, before the target appears; nil: none

	mu    sync.Mutex
	parts []minio.CompletePart // of a single file; nil: it is there
}

// requests is the number of requests at the same time.
func (u *Upload) requests() int { return max(leastRequests, 2*u.Workers) }

// requests returns what repeats requests.
func (t *Target) requests(ctx context.Context) *requests {
	return &requests{ctx: ctx, o: t.o, server: t.s3}
}

// Check refuses a target that exists, unless it is of the upload run, and one that cannot be written.
func (t *Target) Check(ctx context.Context, run string) error {
	r := t.requests(ctx)
	own, err := t.run(r, t.key)
	if err == nil && own != "" && (t.dir || own != run) {
		err = t.taken(r, t.key, t.key)
	}
	if err == nil && t.dir {
		err = t.checkEmpty(r, run)
	}
	if err == nil {
		err = t.checkReport(r)
	}
	if err != nil {
		return err
	}
	id := ""
	err = r.retry("write", t.Address(), func() (err error) {
		id, err = t.s3.begin(ctx, t.key, "")
		return err
	})
	if err != nil {
		return err
	}
	return r.retry("abort", t.Address(), func() error { return t.s3.abort(ctx, t.key, id) })
}

// checkEmpty refuses a directory with objects.
func (t *Target) checkEmpty(r *requests, run string) error {
	first := ""
	err := r.retry("list", t.Address(), func() error {
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		err := t.s3.list(ctx, t.key+"/", "", func(o *object) {
			if first == "" {
				first = o.key
				cancel()
			}
		})
		if first != "" {
			err = nil
		}
		return err
	})
	if err != nil || first == "" {
		return err
	}
	half, err := t.marked(r)
	if err != nil || half != "" && half == run {
		return err
	}
	done, err := t.run(r, t.manifest())
	if err != nil || done != "" && done == run && half == "" {
		return err
	}
	if half != "" {
		return t.half(r)
	}
	return t.taken(r, t.key, first)
}

// taken is the error about the address of a key that is taken; of is the object that shows it.
func (t *Target) taken(r *requests, key, of string) *ExistsError {
	e := &ExistsError{Address: t.s3.address(key), Removal: t.Removal()}
	if w, err := t.s3.writerOf(r.ctx, of); err == nil {
		e.Writer = w.String()
	}
	return e
}

// half is the error about a directory that another run uploads, or has begun to.
func (t *Target) half(r *requests) *ExistsError {
	e := t.taken(r, t.key, t.marker())
	e.Half = true
	return e
}

// checkReport refuses an object in the place of the report that is no report of an earlier target.
func (t *Target) checkReport(r *requests) error {
	own, err := t.run(r, t.report())
	if err == nil && own == foreign {
		err = t.taken(r, t.report(), t.report())
	}
	return err
}

func (t *Target) marker() string   { return t.key + "/" + IncompleteName }
func (t *Target) manifest() string { return t.key + "/" + ManifestName }
func (t *Target) report() string   { return t.key + ReportEnding }

// foreign is the run of an object of another program.
const foreign = "?"

// marked returns the run of an unfinished upload; "" if there is none.
func (t *Target) marked(r *requests) (string, error) { return t.run(r, t.marker()) }

// run returns the run of an object; "" if it does not exist, and foreign if another program made it.
func (t *Target) run(r *requests, key string) (run string, err error) {
	err = r.retry("stat", t.s3.address(key), func() error {
		w, err := t.s3.writerOf(r.ctx, key)
		if err == nil {
			run = w.run
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return cmp.Or(run, foreign), err
}

// sending is one call of Upload.
type sending struct {
	*requests
	t     *Target
	u     *Upload
	limit *pace.Limiter
}

// sent is a file while it is sent.
type sent struct {
	File
	local, key string
	part       int64 // size; 0: it is sent whole
	begin      sync.Once
	err        error
	id         string
	have       map[int]minio.ObjectPart
	etags      []minio.CompletePart
	left       atomic.Int64 // parts
}

// job is a part of a file.
type job struct {
	f *sent
	n int
}

// Upload sends the files at or below root. Nobody sees a whole target before Publish. It goes on with what an earlier
// process with the same Run has sent.
func (t *Target) Upload(ctx context.Context, u *Upload, root string, files []File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &sending{requests: t.requests(ctx), t: t, u: u, limit: &pace.Limiter{Rate: u.Rate}}
	if u.IDs == nil {
		u.IDs = map[string]string{}
	}
	there, err := s.start()
	if err != nil {
		return err
	}
	jobs, err := s.jobs(root, files, there)
	if err != nil {
		return err
	}
	return pace.Each(len(jobs), u.requests(), func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := s.do(jobs[i])
		if err != nil {
			cancel(err)
		}
		return err
	})
}

// start claims a directory. It returns the objects that the server has, by key.
func (s *sending) start() (map[string]*object, error) {
	there := map[string]*object{}
	if !s.t.dir {
		run, err := s.t.run(s.requests, s.t.key)
		if err == nil && run == s.u.Run {
			there[s.t.key] = &object{}
		}
		return there, err
	}
	err := s.retry("write", s.t.s3.address(s.t.marker()), func() error {
		err := s.t.s3.putBytes(s.ctx, s.t.marker(), []byte(incompleteText), s.u.Run, true)
		if !errors.Is(err, errTaken) {
			return err
		}
		if w, e := s.t.s3.writerOf(s.ctx, s.t.marker()); e != nil || w.run != s.u.Run {
			return errors.Join(e, s.t.half(s.requests))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return there, s.t.each(s.requests, func(o *object) { there[o.key] = o })
}

// each lists the objects of a directory.
func (t *Target) each(r *requests, do func(*object)) error {
	last := ""
	return r.retry("list", t.Address(), func() error {
		return t.s3.list(r.ctx, t.key+"/", last, func(o *object) {
			last = o.key
			do(o)
		})
	})
}

// jobs lists the parts of all files that the server does not have, the large files first.
func (s *sending) jobs(root string, files []File, there map[string]*object) (out []job, err error) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(b.Size, a.Size) })
	for _, f := range files {
		x := &sent{File: f, local: root, key: s.t.key}
		if s.t.dir {
			x.local, x.key = filepath.Join(root, filepath.FromSlash(f.Path)), path.Join(s.t.key, f.Path)
		}
		n := 1
		if f.Size > s.t.least || !s.t.dir {
			x.part = max(s.t.least, (f.Size/mostParts+partUnit-1)/partUnit*partUnit)
			n = int(max(1, (f.Size+x.part-1)/x.part))
		}
		if o := there[x.key]; o != nil {
			same := !s.t.dir // Publish made it
			if !same && o.size == f.Size {
				if same, err = x.is(o, n); err != nil {
					return nil, err
				}
			}
			if same {
				s.u.Sent(f.Size)
				continue
			}
		}
		if x.part > 0 {
			x.etags = make([]minio.CompletePart, n)
			x.left.Store(int64(n))
		}
		for i := range n {
			out = append(out, job{x, i})
		}
	}
	return out, nil
}

// is reports whether an object of the same size has the bytes of the local file. Its ETag is the MD5 of them, or that
// of the MD5s of n parts and their number; with other ETags, as of encrypted buckets, the file is sent again.
func (f *sent) is(o *object, n int) (bool, error) {
	in, err := disk.Open(f.local)
	if err != nil {
		return false, err
	}
	defer in.Close()
	if f.part == 0 {
		sum, err := sumsOf(in)
		return o.version == sum.tag(), err
	}
	var all []byte
	for i := range int64(n) {
		sum, err := sumsOf(io.NewSectionReader(in, i*f.part, min(f.part, f.Size-i*f.part)))
		if err != nil {
			return false, err
		}
		all = append(all, sum.md5[:]...)
	}
	return o.version == fmt.Sprintf("%x-%d", md5.Sum(all), n), nil
}

// do sends a part of a file, and ends the file with its last part.
func (s *sending) do(j job) error {
	f := j.f
	in, err := disk.Open(f.local)
	if err != nil {
		return err
	}
	defer in.Close()
	if f.part == 0 {
		return s.send(f, in, 0, f.Size, func(r io.Reader, sum *sums) error {
			return s.t.s3.put(s.ctx, f.key, r, f.Size, sum, s.u.Run, false)
		})
	}
	f.begin.Do(func() { f.err = s.begin(f) })
	if f.err != nil {
		return f.err
	}
	off := int64(j.n) * f.part
	size := min(f.part, f.Size-off)
	err = s.send(f, in, off, size, func(r io.Reader, sum *sums) (err error) {
		etag := f.have[j.n+1].ETag
		if r == nil && strings.Trim(etag, `"`) != sum.tag() {
			return errAbsent
		}
		if r != nil {
			etag, err = s.t.s3.part(s.ctx, f.key, f.id, j.n+1, r, size, sum)
		}
		f.etags[j.n] = minio.CompletePart{PartNumber: j.n + 1, ETag: etag}
		return err
	})
	if err != nil || f.left.Add(-1) > 0 {
		return err
	}
	if !s.t.dir { // Publish makes the object
		s.u.parts = f.etags
		return nil
	}
	return s.t.join(s.requests, s.u, f.key, f.id, f.etags, false)
}

// errAbsent means that the server does not have a part.
var errAbsent = errors.New("absent")

// begin begins a file in parts, or takes up what an earlier process has begun.
func (s *sending) begin(f *sent) error {
	s.u.mu.Lock()
	f.id = s.u.IDs[f.key]
	s.u.mu.Unlock()
	if f.id != "" {
		err := s.retry("list", s.t.s3.address(f.key), func() (err error) {
			f.have, err = s.t.s3.parts(s.ctx, f.key, f.id)
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.have = nil
	err := s.retry("write", s.t.s3.address(f.key), func() (err error) {
		f.id, err = s.t.s3.begin(s.ctx, f.key, s.u.Run)
		return err
	})
	if err != nil {
		return err
	}
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	s.u.IDs[f.key] = f.id
	if s.u.Begun == nil {
		return nil
	}
	return s.u.Begun(f.key, f.id)
}

// send sends bytes of a file, as often as it takes. put is called first with nil if the server may have them.
func (s *sending) send(f *sent, in io.ReaderAt, off, size int64, put func(io.Reader, *sums) error) error {
	sum, err := sumsOf(io.NewSectionReader(in, off, size))
	if err != nil {
		return err
	}
	if f.have != nil && put(nil, &sum) == nil {
		s.u.Sent(size)
		return nil
	}
	return s.retry("write", s.t.s3.address(f.key), func() error {
		ctx, cancel := context.WithCancelCause(s.ctx)
		defer cancel(nil)
		r := &paced{r: io.NewSectionReader(in, off, size), s: s, ctx: ctx}
		r.watch = time.AfterFunc(s.o.Idle, func() { cancel(errStalled) })
		defer r.watch.Stop()
		err := put(r, &sum)
		if err != nil {
			s.u.Sent(-r.n)
		}
		return err
	})
}

// paced is the body of a request: it keeps the limit of the rate and counts.
type paced struct {
	r     io.Reader
	s     *sending
	ctx   context.Context
	watch *time.Timer
	n     int64
}

// Read reads the next bytes when they may be sent.
func (p *paced) Read(b []byte) (int, error) {
	p.watch.Stop()
	if p.s.limit.Rate > 0 {
		b = b[:min(len(b), chunkBytes)]
	}
	n, err := p.r.Read(b)
	if n > 0 {
		if e := p.s.limit.Wait(p.ctx, n); e != nil {
			return 0, e
		}
	}
	p.n += int64(n)
	p.s.u.Sent(int64(n))
	p.watch.Reset(p.s.o.Idle)
	return n, err
}
