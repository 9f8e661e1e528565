// Package object reads files from object stores (s3://bucket/key) and web servers (https://host/path) as if they were
// on the local disk. Mount makes package disk open files below an address.
//
// An object is described once, by a listing or a request of its own, and every request for bytes names the version
// that was described: an object that changes while it is read is an error (*disk.ChangedError), never a mixture. Bytes
// are read in pieces of a bounded cache, ahead of a reader that goes forward. Requests that fail for a passing reason
// are repeated from where they broke.
package object

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"kvferry/internal/sys/disk"
)

// Options are the settings of Mount; the zero value has those of the environment.
type Options struct {
	Endpoint  string // URL of an S3 server; "": AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else Amazon's
	Region    string // "": AWS_REGION, AWS_DEFAULT_REGION, the profile's, else the server is asked
	PathStyle bool   // address buckets by path, also at Amazon
	Anonymous bool   // send no credentials
	Memory    int64  // bytes of the cache; 0: 32 MiB

	Tries int           // requests for the same bytes before an error; 0: 8
	Pause time.Duration // before the second try, doubled for each further one; 0: 100 ms
	Idle  time.Duration // a connection without a byte for this long is broken; 0: 30 s
}

const defaultMemory = 32 << 20

// orDefault fills in the defaults.
func (o Options) orDefault() Options {
	for _, d := range []struct {
		p *time.Duration
		d time.Duration
	}{{&o.Pause, 100 * time.Millisecond}, {&o.Idle, 30 * time.Second}} {
		if *d.p <= 0 {
			*d.p = d.d
		}
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.Tries <= 0 {
		o.Tries = 8
	}
	return o
}

// IsAddress reports whether a location is the address of an object or of a prefix of objects.
func IsAddress(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (scheme == "s3" || scheme == "http" || scheme == "https")
}

// server is where objects are.
type server interface {
	// stat describes an object. The error wraps fs.ErrNotExist if it does not exist.
	stat(ctx context.Context, key string) (*object, error)
	// list calls each for the objects whose keys begin with prefix and come after a key, in the order of keys.
	list(ctx context.Context, prefix, after string, each func(*object)) error
	// get requests n bytes at off of the version that was described.
	get(ctx context.Context, o *object, off, n int64) (io.ReadCloser, error)
	// address returns the address of a key.
	address(key string) string
	// passing reports whether a repeated request may succeed.
	passing(err error) bool
}

// object is a described object.
type object struct {
	key      string
	size     int64
	modified time.Time
	version  string // ETag
}

// Mount makes an address readable through package disk until unmount is called or ctx ends. It returns the path to
// use, which is the address without the query of a URL, and makes no request.
func Mount(ctx context.Context, address string, o Options) (p string, unmount func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	f, err := newFiles(ctx, address, o)
	if err != nil {
		cancel()
		return "", nil, err
	}
	undo := disk.Mount(f.server.address(f.base), f)
	return f.server.address(f.start), func() { undo(); cancel() }, nil
}

// newFiles returns the file system of an address: that of the directory it is in.
func newFiles(ctx context.Context, address string, o Options) (*files, error) {
	o = o.orDefault()
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "":
		return nil, fmt.Errorf("%s: no name of a bucket or host: write s3://bucket/directory or https://host/file", address)
	}
	f := &files{ctx: ctx, o: o, cache: newCache(o.Memory), known: map[string]*object{}}
	key := u.EscapedPath()
	if u.Scheme == "s3" { // a key is no URL: % and ? have no meaning
		var bucket string
		bucket, key, _ = strings.Cut(strings.TrimPrefix(address, "s3://"), "/")
		f.server, err = newS3(bucket, &o)
	} else if f.server = newWeb(u, &o); strings.Trim(key, "/") == "" {
		err = fmt.Errorf("%s: names no file", f.server.address(""))
	}
	f.start = path.Clean("/" + key)[1:]
	f.base = path.Dir("/" + f.start)[1:]
	return f, err
}

// failed returns the error of an operation on an object.
func failed(op, address string, err error) error {
	return &fs.PathError{Op: op, Path: address, Err: err}
}
