package s3test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// upload is an object in parts.
type upload struct {
	key   string
	meta  http.Header
	parts map[int][]byte
}

// Uploads returns the keys of the objects in parts that are neither complete nor aborted.
func (f *Fake) Uploads() (keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.uploads {
		keys = append(keys, u.key)
	}
	slices.Sort(keys)
	return keys
}

// Object returns the bytes of an object; nil if it does not exist.
func (f *Fake) Object(key string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[key].data
}

// write answers the requests that change objects, and those about objects in parts. It reports whether the request is
// one of them.
func (f *Fake) write(w http.ResponseWriter, r *http.Request, key string) bool {
	q := r.URL.Query()
	id := q.Get("uploadId")
	switch {
	case r.Method == http.MethodPut && id != "":
		f.putPart(w, r, id)
	case r.Method == http.MethodPut:
		f.putObject(w, r, key)
	case r.Method == http.MethodPost && q.Has("uploads"):
		f.begin(w, r, key)
	case r.Method == http.MethodPost:
		f.complete(w, r, key, id)
	case r.Method == http.MethodDelete:
		f.delete(w, r, key, id)
	case id != "":
		f.listParts(w, r, id)
	case q.Has("uploads"):
		f.listUploads(w, q.Get("prefix"))
	default:
		return false
	}
	return true
}

// received reads a body and compares it with its checksums.
func received(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false
	}
	sum, sha := md5.Sum(b), sha256.Sum256(b)
	if r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) ||
		r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sha[:]) {
		Fail(w, r, http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received.")
		return nil, false
	}
	return b, true
}

// metaOf returns the metadata in the header of a request.
func metaOf(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			out[name] = values
		}
	}
	return out
}

// taken refuses a request that wants to make a new object.
func (f *Fake) taken(w http.ResponseWriter, r *http.Request, key string) bool {
	_, there := f.objects[key]
	if there = there && r.Header.Get("If-None-Match") == "*"; there {
		Fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	return there
}

func (f *Fake) store(key string, data []byte, tag string, meta http.Header) {
	f.objects[key] = content{Key: key, LastModified: modified, ETag: tag, Size: len(data), data: data, meta: meta}
}

func (f *Fake) putObject(w http.ResponseWriter, r *http.Request, key string) {
	b, ok := received(w, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || f.taken(w, r, key) {
		return
	}
	f.store(key, b, tagOf(b), metaOf(r.Header))
	w.Header().Set("ETag", tagOf(b))
}

func tagOf(b []byte) string {
	sum := md5.Sum(b)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(v)
}

func (f *Fake) begin(w http.ResponseWriter, r *http.Request, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	id := fmt.Sprint("upload", f.begun)
	f.uploads[id] = &upload{key, metaOf(r.Header), map[int][]byte{}}
	answer(w, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: Bucket, Key: key, UploadId: id})
}

// upload returns an object in parts. f.mu is held.
func (f *Fake) upload(w http.ResponseWriter, r *http.Request, id string) *upload {
	u := f.uploads[id]
	if u == nil {
		Fail(w, r, http.StatusNotFound, "NoSuchUpload", "The specified multipart upload does not exist.")
	}
	return u
}

func (f *Fake) putPart(w http.ResponseWriter, r *http.Request, id string) {
	b, ok := received(w, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := strconv.Atoi(r.URL.Query().Get("partNumber"))
	if u := f.upload(w, r, id); ok && u != nil && err == nil {
		u.parts[n] = b
		w.Header().Set("ETag", tagOf(b))
	}
}

func (f *Fake) complete(w http.ResponseWriter, r *http.Request, key, id string) {
	var asked struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	err := xml.NewDecoder(r.Body).Decode(&asked)
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.upload(w, r, id)
	if u == nil || f.taken(w, r, key) {
		return
	}
	var all, sums []byte
	for _, p := range asked.Part {
		b, ok := u.parts[p.PartNumber]
		if !ok || tagOf(b) != `"`+strings.Trim(p.ETag, `"`)+`"` {
			err = fmt.Errorf("part %d", p.PartNumber)
		}
		sum := md5.Sum(b)
		all, sums = append(all, b...), append(sums, sum[:]...)
	}
	if err != nil {
		Fail(w, r, http.StatusBadRequest, "InvalidPart", err.Error())
		return
	}
	delete(f.uploads, id)
	tag := fmt.Sprintf(`%s-%d"`, strings.TrimSuffix(tagOf(sums), `"`), len(asked.Part))
	f.store(key, all, tag, u.meta)
	answer(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: Bucket, Key: key, ETag: tag})
}

func (f *Fake) delete(w http.ResponseWriter, r *http.Request, key, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" {
		delete(f.objects, key)
	} else if f.upload(w, r, id) == nil {
		return
	} else {
		delete(f.uploads, id)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *Fake) listParts(w http.ResponseWriter, r *http.Request, id string) {
	type part struct {
		PartNumber int
		ETag       string
		Size       int
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.upload(w, r, id)
	if u == nil {
		return
	}
	out := struct {
		XMLName xml.Name `xml:"ListPartsResult"`
		Part    []part
	}{}
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		out.Part = append(out.Part, part{n, tagOf(u.parts[n]), len(u.parts[n])})
	}
	answer(w, &out)
}

func (f *Fake) listUploads(w http.ResponseWriter, prefix string) {
	type begun struct{ Key, UploadId string }
	f.mu.Lock()
	defer f.mu.Unlock()
	out := struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []begun
	}{}
	for id, u := range f.uploads {
		if strings.HasPrefix(u.key, prefix) {
			out.Upload = append(out.Upload, begun{u.key, id})
		}
	}
	answer(w, &out)
}
