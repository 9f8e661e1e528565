package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// web is a file of a web server, which must send ranges. Its version is the ETag or the time of the last change.
type web struct {
	url    *url.URL
	key    string // the cleaned path of the URL; requests have the path as it is
	client *http.Client
}

func newWeb(u *url.URL, key string, o *Options) *web {
	return &web{u, key, &http.Client{Transport: transport(o)}}
}

// address leaves out the user and the query, which may have secrets.
func (w *web) address(key string) string {
	return strings.TrimSuffix(w.url.Scheme+"://"+w.url.Host+"/"+key, "/")
}

func (w *web) host() string { return w.url.Scheme + "://" + w.url.Host }

// list returns no objects: web servers do not list files.
func (w *web) list(context.Context, string, string, func(*object)) error { return nil }

// statusError is an answer without the file.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", int(e), http.StatusText(int(e)))
}

func (w *web) passing(err error) bool {
	var status statusError
	if errors.As(err, &status) {
		return passingStatus(int(status))
	}
	return !errors.Is(err, errNoRanges) && passingNetwork(err)
}

// errNoRanges means that a server sends only whole files.
var errNoRanges = errors.New("the server does not send parts of files: download the file, or pass an RDB file through a pipe: curl -fsSL URL | kvferry … rdb:-")

func (w *web) stat(ctx context.Context, key string) (*object, error) {
	if key != w.key {
		return nil, fs.ErrNotExist
	}
	r, err := w.request(ctx, "bytes=0-0", "")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	o := &object{key: key, version: versionOf(r)}
	o.modified, _ = http.ParseTime(r.Header.Get("Last-Modified"))
	switch {
	case r.StatusCode == http.StatusPartialContent:
		_, o.size, err = contentRange(r.Header)
	case r.StatusCode == http.StatusOK && r.ContentLength != 0:
		err = errNoRanges
	case r.StatusCode != http.StatusOK && r.Header.Get("Content-Range") != "bytes */0": // only an empty file has no first byte
		err = statusError(r.StatusCode)
	}
	return o, err
}

func (w *web) get(ctx context.Context, o *object, off, n int64) (io.ReadCloser, error) {
	r, err := w.request(ctx, fmt.Sprintf("bytes=%d-%d", off, off+n-1), o.version)
	if err != nil {
		return nil, err
	}
	first, size, err := contentRange(r.Header)
	switch {
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable, err == nil && size != o.size, versionOf(r) != o.version:
		err = errReplaced
	case r.StatusCode != http.StatusPartialContent:
		err = errNoRanges
	case err == nil:
		err = asRequested(first, r.ContentLength, off, n)
	}
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	return r.Body, nil
}

// request requests a range of the file, of the given version if the server compares versions.
func (w *web) request(ctx context.Context, bytes, version string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", bytes)
	if strings.HasPrefix(version, `"`) { // a weak tag never matches
		req.Header.Set("If-Match", version)
	}
	r, err := w.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // it has the whole URL
			err = u.Err
		}
		return nil, err
	}
	switch r.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		return r, nil
	case http.StatusPreconditionFailed:
		err = errReplaced
	case http.StatusNotFound, http.StatusGone:
		err = fs.ErrNotExist
	default:
		err = statusError(r.StatusCode)
	}
	return nil, errors.Join(err, r.Body.Close())
}

// versionOf returns the version that an answer is about.
func versionOf(r *http.Response) string {
	if tag := r.Header.Get("ETag"); tag != "" {
		return tag
	}
	return r.Header.Get("Last-Modified")
}

// asRequested returns an error unless the answer is the requested range.
func asRequested(first, n, off, wanted int64) error {
	if first == off && n == wanted {
		return nil
	}
	return fmt.Errorf("the server sends %d bytes from %d, %d from %d were requested", n, first, wanted, off)
}

// contentRange returns the first byte of an answer, and the size of the file.
func contentRange(head http.Header) (first, size int64, err error) {
	text := head.Get("Content-Range")
	part, all, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, _, _ := strings.Cut(part, "-")
	first, errFirst := strconv.ParseInt(from, 10, 64)
	size, errSize := strconv.ParseInt(all, 10, 64)
	if errFirst != nil || errSize != nil {
		return 0, 0, fmt.Errorf("the server sends the range %q, which does not contain the size", text)
	}
	return first, size, nil
}
