package s3test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// ServerVariable names an environment variable with the executable of a versitygw, a server of S3.
const ServerVariable = "KVFERRY_S3_SERVER"

// Server is a running versitygw.
type Server struct {
	t      testing.TB
	client *minio.Client
}

// NewServer starts the server that ServerVariable names with an empty bucket, and sets the environment so that it is
// found. Without one the test is skipped.
func NewServer(t testing.TB) *Server {
	t.Helper()
	binary := os.Getenv(ServerVariable)
	if binary == "" {
		t.Skipf("SKIPPED: needs the S3 server versitygw; %s names its executable (make s3-server builds it)", ServerVariable)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var log bytes.Buffer
	cmd := exec.Command(binary, "--access", AccessKey, "--secret", SecretKey, "--port", address, "--quiet", "--keep-alive",
		"posix", "--sidecar", t.TempDir(), t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	environment(t, "http://"+address)
	s := &Server{t: t}
	// After an empty upload the server sends more than the answer, which net/http logs on a connection that is kept.
	once := &http.Transport{DisableKeepAlives: true}
	creds := credentials.NewStaticV4(AccessKey, SecretKey, "")
	if s.client, err = minio.New(address, &minio.Options{Creds: creds, Region: "us-east-1", Transport: once}); err != nil {
		t.Fatal(err)
	}
	for range 600 { // at most a minute
		if err = s.client.MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{}); err == nil {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(fmt.Errorf("%s does not answer: %w\n%s", binary, err, log.String()))
	return nil
}

// Put makes or replaces an object.
func (s *Server) Put(key string, data []byte) {
	s.t.Helper()
	_, err := s.client.PutObject(s.t.Context(), Bucket, key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// PutTree is like that of Fake.
func (s *Server) PutTree(root string) (address string) {
	s.t.Helper()
	return putTree(s.t, root, s.Put)
}
