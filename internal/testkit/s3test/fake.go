// Package s3test has servers of objects for tests: one in the process, whose faults a test chooses, and a real one.
package s3test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials and the bucket of every server.
const (
	AccessKey = "kvferry"
	SecretKey = "kvferry-secret"
	Bucket    = "data"
)

// Fake is a server of one bucket. It does not verify signatures, only who signs.
type Fake struct {
	*httptest.Server
	// PerPage is the number of objects in a part of a listing.
	PerPage int

	mu       sync.Mutex
	before   func(w http.ResponseWriter, r *http.Request) bool
	after    func(r *http.Request)
	objects  map[string]content
	uploads  map[string]*upload // by id
	begun    int                // uploads
	requests []string
	sent     int64 // bytes of objects
}

// NewFake starts a server, and sets the environment so that it is found.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{objects: map[string]content{}, uploads: map[string]*upload{}, PerPage: 1000}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	environment(t, f.URL)
	return f
}

// Before sets the function that is called before each request is answered, nil for none. It may answer the request
// itself: it returns true then.
func (f *Fake) Before(before func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// After sets the function that is called when a request is answered. It may panic to lose the answer.
func (f *Fake) After(after func(r *http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = after
}

// environment leads the tools of AWS to a server.
func environment(t testing.TB, url string) {
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": AccessKey,
		"AWS_SECRET_ACCESS_KEY": SecretKey,
		"AWS_CONFIG_FILE":       none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_S3": "",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_SESSION_TOKEN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": ""} {
		t.Setenv(name, value)
	}
}

// Put makes or replaces an object.
func (f *Fake) Put(key string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store(key, data, tagOf(data), nil)
}

// Delete removes an object.
func (f *Fake) Delete(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// Keys returns the keys of all objects, sorted.
func (f *Fake) Keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

// PutTree makes objects of the files at and below a path. The key of the path is its base name, and the address of it
// is returned.
func (f *Fake) PutTree(t testing.TB, root string) (address string) {
	t.Helper()
	return putTree(t, root, f.Put)
}

func putTree(t testing.TB, root string, put func(key string, data []byte)) (address string) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(root), file)
		put(filepath.ToSlash(rel), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return "s3://" + Bucket + "/" + filepath.Base(root)
}

// Requests returns the requests since the last call: GET key bytes=0-9, HEAD key, LIST prefix.
func (f *Fake) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// Sent returns the bytes of objects sent since the last call.
func (f *Fake) Sent() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.sent
	f.sent = 0
	return n
}

// sending counts the bytes of objects that an answer has.
type sending struct {
	http.ResponseWriter
	f *Fake
}

// Write sends bytes. It counts them before the client can have them.
func (s *sending) Write(b []byte) (int, error) {
	s.f.mu.Lock()
	s.f.sent += int64(len(b))
	s.f.mu.Unlock()
	return s.ResponseWriter.Write(b)
}

func (f *Fake) note(parts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, strings.TrimSpace(strings.Join(parts, " ")))
}

// serve answers a request.
func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if after != nil {
		defer after(r)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	list := r.URL.Query().Get("list-type") == "2"
	if list {
		f.note("LIST", r.URL.Query().Get("prefix"))
	} else {
		f.note(r.Method, key, r.Header.Get("Range"))
	}
	switch {
	case before != nil && before(w, r):
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/"):
		Fail(w, r, http.StatusForbidden, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records.")
	case bucket != Bucket:
		Fail(w, r, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case list:
		f.list(w, r)
	case f.write(w, r, key):
	default:
		f.get(w, r, key)
	}
}

// Fail answers with an error of S3. An answer to HEAD has no body.
func Fail(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	}
}

// modified is the time of all objects: only the ETag tells versions apart.
var modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// content is an object as a listing describes it.
type content struct {
	Key          string
	LastModified time.Time
	ETag         string
	Size         int
	data         []byte
	meta         http.Header
}

func (f *Fake) get(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	o, ok := f.objects[key]
	f.mu.Unlock()
	if !ok {
		Fail(w, r, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	w.Header().Set("ETag", o.ETag)
	maps.Copy(w.Header(), o.meta)
	http.ServeContent(&sending{w, f}, r, path.Base(key), modified, bytes.NewReader(o.data)) // knows Range and If-Match
}

// list answers with a part of the objects with a prefix.
func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	answer := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []content
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
	}{}
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []string
	for key := range f.objects {
		if strings.HasPrefix(key, q.Get("prefix")) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if answer.IsTruncated = len(keys) > f.PerPage; answer.IsTruncated {
		keys = keys[:f.PerPage]
		answer.NextContinuationToken = keys[len(keys)-1]
	}
	for _, key := range keys {
		answer.Contents = append(answer.Contents, f.objects[key])
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(&answer)
}
