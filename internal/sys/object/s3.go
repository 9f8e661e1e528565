package object

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// amazon is the default endpoint; the library derives that of a region.
const amazon = "https://s3.amazonaws.com"

// s3 is a bucket.
type s3 struct {
	bucket string
	region string // of requests; "": the server is asked
	client *minio.Core
	needs  string // permissions
}

// newS3 prepares requests to a bucket.
func newS3(bucket string, o *Options) (*s3, error) {
	of := profile()
	endpoint := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), of.endpoint, amazon)
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("endpoint %q of the object store: want a URL such as https://host:9000", Shown(endpoint))
	}
	region := cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), of.region)
	if region == "" && endpoint != amazon { // as the tools of AWS do; at Amazon the bucket is asked
		region = "us-east-1"
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: credentialsOf(o, region), Secure: u.Scheme == "https",
		Region:       region,
		BucketLookup: lookup, Transport: transport(o), MaxRetries: 1}) // files.retry repeats
	if err != nil {
		return nil, fmt.Errorf("s3://%s: %w", bucket, err)
	}
	return &s3{bucket, region, client, "s3:GetObject and, for directories, s3:ListBucket"}, nil
}

func (s *s3) address(key string) string {
	return strings.TrimSuffix("s3://"+s.bucket+"/"+key, "/")
}

func (s *s3) host() string {
	return s.client.EndpointURL().String() + " (--s3-endpoint, AWS_ENDPOINT_URL, or endpoint_url of the profile)"
}

func (s *s3) stat(ctx context.Context, key string) (*object, error) {
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, s.explained(err)
	}
	return s3Object(&info), nil
}

func s3Object(info *minio.ObjectInfo) *object {
	return &object{key: info.Key, size: info.Size, modified: info.LastModified, version: strings.Trim(info.ETag, `"`)}
}

func (s *s3) list(ctx context.Context, prefix, after string, each func(*object)) error {
	owner := false
	ctx, cancel := context.WithCancel(ctx) // ends the listing after an error
	defer cancel()
	for info := range s.client.ListObjectsIter(ctx, s.bucket,
		minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after, FetchOwner: &owner}) {
		if info.Err != nil {
			return s.explained(info.Err)
		}
		each(s3Object(&info))
	}
	return ctx.Err()
}

func (s *s3) get(ctx context.Context, o *object, off, n int64) (io.ReadCloser, error) {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(off, off+n-1); err != nil {
		return nil, err
	}
	if o.version != "" { // gateways may lack it for files that other programs stored
		if err := opts.SetMatchETag(o.version); err != nil {
			return nil, err
		}
	}
	body, info, head, err := s.client.GetObject(ctx, s.bucket, o.key, opts)
	if err != nil {
		return nil, s.explained(err)
	}
	first, size := int64(0), info.Size // of the whole object, which may be sent without a range
	if head.Get("Content-Range") != "" || info.Size != o.size {
		first, size, err = contentRange(head)
	}
	switch {
	case strings.Trim(info.ETag, `"`) != o.version, err == nil && size != o.size: // of a server that does not know If-Match
		err = errReplaced
	case err == nil:
		err = asRequested(first, info.Size, off, n)
	}
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return body, nil
}

// s3Error is an answer of the server that is not about the state of an object.
type s3Error struct {
	minio.ErrorResponse
	advice string
}

// Error has the server's words, its code, and what to do.
func (e *s3Error) Error() string {
	return fmt.Sprintf("%s (%s)%s", strings.TrimSuffix(e.ErrorResponse.Error(), "."), e.Code, e.advice)
}

// denied reports whether the server denied access: without permission to list, it also denies that an object exists.
func denied(err error) bool {
	var s *s3Error
	return errors.As(err, &s) && s.StatusCode == http.StatusForbidden
}

// explained gives the errors of the server their meaning.
func (s *s3) explained(err error) error {
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return err
	}
	e := &s3Error{ErrorResponse: r}
	switch {
	case r.Code == minio.NoSuchKey, r.Code == "NoSuchUpload":
		return fs.ErrNotExist
	case r.Code == minio.PreconditionFailed || r.StatusCode == http.StatusPreconditionFailed:
		return errReplaced
	case r.Code == minio.NoSuchBucket:
		e.Message = "there is no bucket " + s.bucket + " at " + s.client.EndpointURL().Host
		e.advice = ": correct its name, or name another server by --s3-endpoint or AWS_ENDPOINT_URL"
	case r.Region != "" && r.Region != s.region:
		e.advice = fmt.Sprintf(": the bucket %s is in the region %s, the request was for %s: use --s3-region %[2]s or AWS_REGION=%[2]s",
			s.bucket, r.Region, cmp.Or(s.region, "none"))
	case r.StatusCode == http.StatusForbidden:
		e.advice = ": kvferry needs " + s.needs + "; AWS_PROFILE chooses other credentials"
	case r.Code == "AuthorizationHeaderMalformed" || r.StatusCode == http.StatusMovedPermanently:
		e.advice = ": name the region by --s3-region or AWS_REGION"
	}
	return e
}

// passingCodes are codes of S3 that a repeated request may not meet.
var passingCodes = []string{"RequestTimeout", "Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled",
	"InternalError", "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "ConditionalRequestConflict"}

func (s *s3) passing(err error) bool {
	var r *s3Error
	if errors.As(err, &r) {
		return passingStatus(r.StatusCode) || slices.Contains(passingCodes, r.Code)
	}
	return passingNetwork(err)
}

// connections is the number of idle connections kept: one for each reader and one ahead of it, for usual numbers of
// workers.
const connections = 64

// transport returns the connections to one server.
func transport(o *Options) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: min(o.Idle, 5*time.Second), KeepAlive: 15 * time.Second}).DialContext
	t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	t.ResponseHeaderTimeout = o.Idle
	t.DisableCompression = true // ranges are of the stored bytes
	t.ReadBufferSize = 64 << 10
	if o.Traffic == nil {
		return t
	}
	return &counted{t, o.Traffic}
}

// passingStatus reports whether a server may answer a repeated request otherwise.
func passingStatus(code int) bool {
	return code >= 500 && code != http.StatusNotImplemented || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout
}

// passingNetwork reports whether an error is one of the network that may not recur.
func passingNetwork(err error) bool {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var login *loginError
	return !errors.As(err, &certificate) && !errors.As(err, &login) && (!errors.As(err, &name) || !name.IsNotFound)
}
