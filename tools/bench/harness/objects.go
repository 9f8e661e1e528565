package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// s3Server names an environment variable with the executable of a versitygw, a server of S3.
const s3Server = "KVFERRY_S3_SERVER"

// objects compares a source in an object store on this machine with the same files on disk.
func (b *bench) objects() (out []*result, err error) {
	binary := os.Getenv(s3Server)
	if binary == "" {
		fmt.Fprintf(os.Stderr, "SKIPPED: objects: needs the S3 server versitygw; %s names its executable (make s3-server builds it)\n",
			s3Server)
		return nil, nil
	}
	src, err := b.data.mixIn("blackwidow", b.o.elements)
	if err != nil {
		return nil, err
	}
	stop, err := b.startStore(binary)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	remote := "s3://" + filepath.Base(src)
	read := func(name, src string) *command {
		return &command{Name: name, Argv: []string{b.kvferry, "fingerprint", src, "--workers", "2"}}
	}
	for _, c := range []struct {
		name       string
		disk, objs *command
	}{
		{"fingerprint", read("disk", "blackwidow:"+src), read("objects", "blackwidow:"+remote)},
		{"blackwidow to blackwidow", b.convert("blackwidow:"+src, "disk", false, "--workers", "2"), b.convert("blackwidow:"+remote, "objects", false, "--workers", "2")},
	} {
		r, err := b.against(c.name+" of a local object store against the same files, two workers", 0.7, c.disk, c.objs)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// startStore starts a server whose buckets are the datasets, and sets the environment so that kvferry finds it.
func (b *bench) startStore(binary string) (stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	const access, secret = "bench", "benchbench"
	side, err := os.MkdirTemp("", "kvferry-bench-")
	if err != nil {
		return nil, err
	}
	none := filepath.Join(side, "none")
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": "http://" + address, "AWS_ACCESS_KEY_ID": access,
		"AWS_SECRET_ACCESS_KEY": secret,
		"AWS_CONFIG_FILE":       none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_ENDPOINT_URL_S3": "", "AWS_PROFILE": ""} {
		os.Setenv(name, value)
	}
	cmd := exec.Command(binary, "--access", access, "--secret", secret, "--port", address, "--quiet", "--keep-alive", "posix",
		"--sidecar", side, b.o.dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(side))
	}
	stop = func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return os.RemoveAll(side)
	}
	for range 600 { // at most a minute
		c, err := net.Dial("tcp", address)
		if err == nil {
			return stop, c.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s does not answer", binary), stop(), errors.New(said.String()))
}
