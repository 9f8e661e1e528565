package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// dialTimeout limits how long a connection attempt may take.
const dialTimeout = 10 * time.Second

// Options are the parameters of all connections to a server.
type Options struct {
	*address
	format.ServerOptions
	tlsConfig *tls.Config
	memory    int64        // memory limit of the command; 0: unknown
	hush      atomic.Int64 // no silence notice before this time (Unix ns): several connections may wait for one server
}

// NewOptions parses the address and loads the certificate files.
func NewOptions(location string, so *format.ServerOptions) (*Options, error) {
	a, err := ParseAddress(location)
	if err != nil {
		return nil, err
	}
	o := &Options{address: a}
	if so != nil {
		o.ServerOptions = *so
	}
	if !a.TLS {
		if o.CA != "" || o.Cert != "" {
			return nil, fmt.Errorf("%s: certificates need TLS: write rediss://", a.Shown)
		}
		return o, nil
	}
	host, _, _ := net.SplitHostPort(a.Host)
	o.tlsConfig = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure}
	if o.CA != "" {
		pem, err := disk.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		o.tlsConfig.RootCAs = x509.NewCertPool()
		if !o.tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: contains no certificate", o.CA)
		}
	}
	if o.Cert != "" {
		pair, err := keyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		o.tlsConfig.Certificates = []tls.Certificate{pair}
	}
	return o, nil
}

// keyPair reads a certificate and its key.
func keyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := disk.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := disk.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// handshakeTimeout limits the TLS handshake. A server without TLS would wait for the end of a line forever.
const handshakeTimeout = 4 * time.Second

// shakeHands checks that the server speaks TLS if the address requires it. It ignores a failure to connect: the next
// connection reports it.
func (o *Options) shakeHands(ctx context.Context) error {
	if o.tlsConfig == nil {
		return nil
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, o.network, o.Host)
	if err != nil {
		return nil
	}
	defer conn.Close()
	in, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	err = tls.Client(conn, o.tlsConfig).HandshakeContext(in)
	var record tls.RecordHeaderError
	switch {
	case err == nil, ctx.Err() != nil:
		return context.Cause(ctx)
	case in.Err() != nil:
		return fmt.Errorf("no TLS handshake in %s: if the server has no TLS, use %s", handshakeTimeout, Scheme(!o.TLS, o.Cluster))
	case errors.As(err, &record):
		return fmt.Errorf("%w: if the server has no TLS, use %s", err, Scheme(!o.TLS, o.Cluster))
	}
	return err
}

// plainHint adds a hint to the first error of a plain connection if the server may require TLS.
func (o *Options) plainHint(err error) error {
	const alert = `"\x15\x03` // the beginning of a TLS alert
	if o.TLS || o.network != "tcp" || err == nil {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), alert) {
		return fmt.Errorf("%w: TLS there? use %s", Closed(err), Scheme(!o.TLS, o.Cluster))
	}
	return err
}
