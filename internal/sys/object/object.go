// Package object reads files from object stores (s3://bucket/key) and web servers (https://host/path) as if they were
// on the local disk. Mount makes package disk open files below an address. A Target uploads a finished file or directory.
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
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	Traffic *Traffic // counts the requests; nil: nobody asks

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

// IsWeb reports whether an address is that of a file of a web server, which does not list files.
func IsWeb(s string) bool { return IsAddress(s) && !strings.HasPrefix(s, "s3:") }

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
	// host names the server in messages, and the settings that lead to it.
	host() string
	// passing reports whether a repeated request may succeed.
	passing(err error) bool
}

// object is a described object.
type object struct {
	key      string
	size     int64
	modified time.Time
	version  string // ETag

	kept atomic.Pointer[kept] // nil unless it is read more than once
}

// places are the paths of the addresses that are mounted.
var places struct {
	sync.Mutex
	paths []string
}

// Mount makes an address readable through package disk until unmount is called or ctx ends. It returns the path to
// use, and makes no request. The path is the address without the user and the query of a URL. An address at, above or
// below one that is mounted has a number behind its host: different addresses never have the same path.
func Mount(ctx context.Context, address string, o Options) (p string, unmount func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	f, err := newFiles(ctx, address, o)
	if err != nil {
		cancel()
		return "", nil, err
	}
	places.Lock()
	defer places.Unlock()
	f.number = 1
	for p = f.addressOf(f.start); slices.ContainsFunc(places.paths, func(q string) bool {
		return disk.Under(p, q) || disk.Under(q, p)
	}); {
		f.number++
		p = f.addressOf(f.start)
	}
	places.paths = append(places.paths, p)
	undo := disk.Mount(f.addressOf(f.base), p, f)
	return p, sync.OnceFunc(func() {
		places.Lock()
		defer places.Unlock()
		places.paths = slices.DeleteFunc(places.paths, func(q string) bool { return p == q })
		undo()
		cancel()
		f.forget()
	}), nil
}

// newFiles returns the file system of an address: that of the directory it is in.
func newFiles(ctx context.Context, address string, o Options) (*files, error) {
	o = o.orDefault()
	f := &files{requests: requests{ctx: ctx, o: o}, cache: newCache(o.Memory), known: map[string]*object{}}
	var err error
	if strings.HasPrefix(address, "s3://") {
		f.server, f.start, err = startOfS3(address, &o)
	} else {
		f.start, f.server, err = startOfWeb(address, &o)
	}
	f.base = path.Dir("/" + f.start)[1:]
	return f, err
}

// startOfS3 parses the address of a key. A key is no URL: % and ? have no meaning.
func startOfS3(address string, o *Options) (*s3, string, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(address, "s3://"), "/")
	key = strings.TrimRight(key, "/")
	if bucket == "" {
		return nil, "", errNoHost(address)
	}
	if strings.ContainsAny(bucket, ":@") {
		return nil, "", fmt.Errorf("%s: the name of a bucket has no : or @; kvferry reads credentials from the environment and the files of AWS",
			Shown(address))
	}
	if clean(key) != key {
		return nil, "", fmt.Errorf("%s: kvferry reads keys as paths: it cannot read those with empty or dotted parts", address)
	}
	s, err := newS3(bucket, o)
	return s, key, err
}

// startOfWeb parses a URL. Its errors do not contain what the URL has of secrets.
func startOfWeb(address string, o *Options) (start string, _ server, err error) {
	u, err := url.Parse(address)
	_, query, _ := strings.Cut(address, "?")
	switch {
	case strings.Contains(address, "://"+hidden+"@") || strings.Contains(query, hidden):
		return "", nil, fmt.Errorf("%s: put the user or the value back where %s is: kvferry does not print them", Shown(address),
			hidden)
	case err != nil: // the reason may have a part of the password
		return "", nil, fmt.Errorf("%s: invalid URL: write %%25, %%2F, %%3A, %%40 for %%, /, :, @ in a user or password",
			Shown(address))
	case u.Hostname() == "":
		return "", nil, errNoHost(Shown(address))
	}
	if start = clean(u.EscapedPath()); start == "" {
		err = fmt.Errorf("%s: names no file", Shown(address))
	}
	return start, newWeb(u, start, o), err
}

func errNoHost(address string) error {
	return fmt.Errorf("%s: no name of a bucket or host: write s3://bucket/directory or https://host/file", address)
}

// clean returns a key as package disk has it in paths.
func clean(key string) string { return path.Clean("/" + key)[1:] }

// hidden stands for what Shown leaves out.
const hidden = "…"

// urlWord matches a URL that is a word of a command line, and what may be before it: a flag and a format.
var urlWord = regexp.MustCompile(`(?is)^((?:--[a-z0-9-]+=)?(?:[a-z][a-z0-9.]*(?:\+[a-z0-9]+)?:)?https?://)(.*)$`)

// loginWord matches another URL with a password, which may have / and ?, and secretWord one with a secret in its query.
var (
	loginWord  = regexp.MustCompile(`(?is)^((?:--[a-z0-9-]+=)?(?:[a-z][a-z0-9.+]*:)?[a-z][a-z0-9.+-]*://)[^/?#@]*:.*@`)
	secretWord = regexp.MustCompile(`(?i)([?&;][^=&;?]*(?:sig|token|secret|pass|credential|key|auth)[^=&;?]*=)[^&;]+`)
)

// Shown returns a location, or any other word of a command line, as it may be printed and written to files: a URL has …
// in place of the user and of the values of its query, which may be secrets. Mount refuses such a URL and asks for them.
func Shown(word string) string {
	m := urlWord.FindStringSubmatch(word)
	if m == nil {
		if word = loginWord.ReplaceAllString(word, "${1}"+hidden+"@"); strings.Contains(word, "://") {
			word = secretWord.ReplaceAllString(word, "${1}"+hidden)
		}
		return word
	}
	user, rest := "", m[2]
	host := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("/?#", r) }))]
	if _, err := url.Parse("https://" + host); err != nil {
		host = rest // a password may have / and ?
	}
	if i := strings.LastIndex(host, "@"); i >= 0 {
		user, rest = hidden, rest[i:]
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, asked := strings.Cut(rest, "?")
	if asked {
		values := strings.Split(query, "&")
		for i, v := range values {
			if name, _, named := strings.Cut(v, "="); named {
				values[i] = name + "=" + hidden
			} else {
				values[i] = hidden
			}
		}
		rest += "?" + strings.Join(values, "&")
	}
	return m[1] + user + rest
}

// failed returns the error of an operation on an object.
func failed(op, address string, err error) error {
	return &fs.PathError{Op: op, Path: address, Err: err}
}
