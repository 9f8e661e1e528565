package object

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// The metadata of an object that name the upload it is of, and the process that made it.
const (
	runHeader    = "Kvferry-Run"
	writerHeader = "Kvferry-Writer"
)

// thisWriter names this process in the metadata of objects, which are ASCII.
var thisWriter = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), strings.Trim(strconv.QuoteToASCII(host), `"`))
})

// errTaken means that an object that is to be made exists.
var errTaken = errors.New("it exists")

// sums are the checksums that the server verifies of what it receives: the request is signed with the SHA-256.
type sums struct {
	md5  [md5.Size]byte
	sha2 [sha256.Size]byte
}

// sumsOf reads a file.
func sumsOf(r io.Reader) (s sums, err error) {
	a, b := md5.New(), sha256.New()
	if _, err = io.Copy(io.MultiWriter(a, b), r); err != nil {
		return s, err
	}
	a.Sum(s.md5[:0])
	b.Sum(s.sha2[:0])
	return s, nil
}

func (s *sums) tag() string { return hex.EncodeToString(s.md5[:]) }

// putOptions are those of an object of an upload. fresh makes the request fail if the object exists.
func putOptions(run string, fresh bool) (o minio.PutObjectOptions) {
	o.DisableContentSha256 = true // the whole is signed, not its pieces
	o.ContentType = "application/octet-stream"
	o.UserMetadata = map[string]string{runHeader: run, writerHeader: thisWriter()}
	if fresh {
		o.SetMatchETagExcept("*")
	}
	return o
}

// put makes an object.
func (s *s3) put(ctx context.Context, key string, r io.Reader, size int64, sum *sums, run string, fresh bool) error {
	_, err := s.client.PutObject(ctx, s.bucket, key, r, size, base64.StdEncoding.EncodeToString(sum.md5[:]),
		hex.EncodeToString(sum.sha2[:]), putOptions(run, fresh))
	return s.made(err)
}

// made gives the errors of requests that make an object their meaning.
func (s *s3) made(err error) error {
	if err = s.explained(err); errors.Is(err, errReplaced) {
		return errTaken
	}
	return err
}

// unconditional reports whether a server refused a request because of its condition.
func unconditional(err error) bool {
	var r *s3Error
	return errors.As(err, &r) && r.StatusCode == http.StatusNotImplemented
}

// putBytes makes a small object.
func (s *s3) putBytes(ctx context.Context, key string, b []byte, run string, fresh bool) error {
	sum, err := sumsOf(bytes.NewReader(b))
	if err != nil {
		return err
	}
	err = s.put(ctx, key, bytes.NewReader(b), int64(len(b)), &sum, run, fresh)
	if fresh && unconditional(err) {
		err = s.put(ctx, key, bytes.NewReader(b), int64(len(b)), &sum, run, false)
	}
	return err
}

// begin begins an object in parts.
func (s *s3) begin(ctx context.Context, key, run string) (id string, err error) {
	id, err = s.client.NewMultipartUpload(ctx, s.bucket, key, putOptions(run, false))
	return id, s.explained(err)
}

// part sends a part, and returns its ETag.
func (s *s3) part(ctx context.Context, key, id string, n int, r io.Reader, size int64, sum *sums) (string, error) {
	p, err := s.client.PutObjectPart(ctx, s.bucket, key, id, n, r, size, minio.PutObjectPartOptions{DisableContentSha256: true,
		Md5Base64: base64.StdEncoding.EncodeToString(sum.md5[:]), Sha256Hex: hex.EncodeToString(sum.sha2[:])})
	return p.ETag, s.explained(err)
}

// parts lists the parts that the server has, by number. Of an upload that it does not know it has none.
func (s *s3) parts(ctx context.Context, key, id string) (map[int]minio.ObjectPart, error) {
	out := map[int]minio.ObjectPart{}
	for marker := 0; ; {
		page, err := s.client.ListObjectParts(ctx, s.bucket, key, id, marker, 1000)
		if err != nil {
			return nil, s.explained(err)
		}
		for _, p := range page.ObjectParts {
			out[p.PartNumber] = p
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return out, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// complete makes an object of its parts, unless it exists.
func (s *s3) complete(ctx context.Context, key, id string, parts []minio.CompletePart, run string, fresh bool) error {
	_, err := s.client.CompleteMultipartUpload(ctx, s.bucket, key, id, parts, putOptions(run, fresh))
	if fresh && unconditional(s.explained(err)) {
		_, err = s.client.CompleteMultipartUpload(ctx, s.bucket, key, id, parts, putOptions(run, false))
	}
	return s.made(err)
}

// abort drops an object in parts.
func (s *s3) abort(ctx context.Context, key, id string) error {
	err := s.explained(s.client.AbortMultipartUpload(ctx, s.bucket, key, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// begun lists the objects in parts whose keys begin with a prefix: pairs of key and id.
func (s *s3) begun(ctx context.Context, prefix string) (out [][2]string, err error) {
	for key, id := "", ""; ; {
		page, err := s.client.ListMultipartUploads(ctx, s.bucket, prefix, key, id, "", 1000)
		if err != nil {
			return nil, s.explained(err)
		}
		for _, u := range page.Uploads {
			out = append(out, [2]string{u.Key, u.UploadID})
		}
		if !page.IsTruncated || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
			return out, nil
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// remove deletes an object.
func (s *s3) remove(ctx context.Context, key string) error {
	return s.explained(s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}))
}

// writer names the maker of an object.
type writer struct {
	run     string // of the upload; "": another program made it
	process string // as thisWriter names it; "" if that is unknown
	at      time.Time
}

// String names the writer in messages.
func (w *writer) String() string {
	at := w.at.UTC().Format(time.RFC3339)
	switch {
	case w.run == "":
		return "another program wrote it at " + at
	case w.process == "":
		return "kvferry wrote it at " + at
	}
	return "kvferry, " + w.process + ", wrote it at " + at
}

// writerOf returns who made an object.
func (s *s3) writerOf(ctx context.Context, key string) (*writer, error) {
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, s.explained(err)
	}
	w := &writer{at: info.LastModified}
	for name, value := range info.UserMetadata {
		switch {
		case strings.EqualFold(name, runHeader):
			w.run = value
		case strings.EqualFold(name, writerHeader):
			w.process = value
		}
	}
	return w, nil
}
