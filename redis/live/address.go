package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// address is a parsed server address.
type address struct {
	network string // tcp or unix
	host    string // host:port, or the path of a socket
	user    string
	db      int // -1: all
	tls     bool
	cluster bool
	shown   string // without credentials
}

// schemes are the URL schemes of server addresses.
var schemes = []string{"redis", "rediss", "unix", "redis+cluster", "rediss+cluster"}

// IsAddress reports whether a location is a server address.
func IsAddress(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	if !ok {
		return false
	}
	for _, s := range schemes {
		if s == scheme {
			return true
		}
	}
	return false
}

const defaultPort = "6379"

// parseAddress reads redis://[user@]host[:port][/db], rediss://…, redis+cluster://…, rediss+cluster://… and
// unix:///path[?db=n]. It rejects a password, which other users could see on the command line.
func parseAddress(location string) (*address, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, format.Usagef("%s: not the address of a server", strings.SplitN(location, "@", 2)[0])
	}
	if _, ok := u.User.Password(); ok {
		return nil, format.Usagef("the address contains a password, which others can see on a command line: " +
			"put it in KVFERRY_PASSWORD or a file that --password-file names")
	}
	a := &address{network: "tcp", user: u.User.Username(), db: -1, tls: strings.HasPrefix(u.Scheme, "rediss"),
		cluster: strings.HasSuffix(u.Scheme, "+cluster")}
	path := strings.Trim(u.Path, "/")
	if u.Scheme == "unix" {
		a.network, a.host, path = "unix", u.Path, u.Query().Get("db")
	} else {
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		a.host = net.JoinHostPort(u.Hostname(), port)
	}
	if a.host == "" || u.Scheme != "unix" && u.Hostname() == "" {
		return nil, format.Usagef("%s: no server in the address: want redis://host:port", location)
	}
	if path != "" {
		if a.db, err = strconv.Atoi(path); err != nil || a.db < 0 {
			return nil, format.Usagef("%s: %q is not the number of a database", location, path)
		}
	}
	if a.cluster && a.db > 0 {
		return nil, format.Usagef("%s: a cluster has only database 0", location)
	}
	a.shown = u.Scheme + "://" + a.host
	if u.Scheme == "unix" {
		a.shown = "unix://" + u.Path
	}
	return a, nil
}

// dialTimeout limits how long a connection attempt may take.
const dialTimeout = 10 * time.Second

// options are the parameters of all connections to a server.
type options struct {
	*address
	format.ServerOptions
	tlsConfig *tls.Config
	memory    int64        // memory limit of the command; 0: unknown
	hush      atomic.Int64 // no silence notice before this time (Unix ns): several connections may wait for one server
}

// newOptions parses the address and loads the certificate files.
func newOptions(location string, so *format.ServerOptions) (*options, error) {
	a, err := parseAddress(location)
	if err != nil {
		return nil, err
	}
	o := &options{address: a}
	if so != nil {
		o.ServerOptions = *so
	}
	if !a.tls {
		if o.CA != "" || o.Cert != "" {
			return nil, fmt.Errorf("%s: certificates need TLS: write rediss://", a.shown)
		}
		return o, nil
	}
	host, _, _ := net.SplitHostPort(a.host)
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
func (o *options) shakeHands(ctx context.Context) error {
	if o.tlsConfig == nil {
		return nil
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, o.network, o.host)
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
		return fmt.Errorf("no answer to a TLS handshake in %s: no TLS there? use %s", handshakeTimeout, o.otherScheme())
	case errors.As(err, &record):
		return fmt.Errorf("%w: no TLS there? use %s", err, o.otherScheme())
	}
	return err
}

// plainHint adds a hint to the first error of a plain connection if the server may require TLS.
func (o *options) plainHint(err error) error {
	const alert = `"\x15\x03` // the beginning of a TLS alert
	if o.tls || o.network != "tcp" || err == nil {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), alert) {
		return fmt.Errorf("%w: TLS there? use %s", closed(err), o.otherScheme())
	}
	return err
}

// otherScheme returns the scheme of the same address with TLS switched on or off.
func (o *options) otherScheme() string {
	scheme := "redis"
	if !o.tls {
		scheme += "s"
	}
	if o.cluster {
		scheme += "+cluster"
	}
	return scheme + "://"
}

// clusterScheme returns the scheme that addresses the whole cluster.
func (o *options) clusterScheme() string {
	if o.tls {
		return "rediss+cluster://"
	}
	return "redis+cluster://"
}

// closedError prints io.EOF and connection resets as "the server closed the connection".
type closedError struct{ error }

func (e closedError) Unwrap() error { return e.error }

func (e closedError) Error() string {
	const words = "the server closed the connection"
	before := strings.TrimSuffix(strings.TrimSuffix(e.error.Error(), io.EOF.Error()), "unexpected ")
	if before == "" || strings.HasSuffix(before, ": ") {
		return before + words
	}
	return words + " (" + e.error.Error() + ")"
}

// closed wraps the error of a closed connection in closedError.
func closed(err error) error {
	var already closedError
	if errors.As(err, &already) || !strings.HasSuffix(err.Error(), io.EOF.Error()) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return closedError{err}
}

// told adds the address, and a hint for errors that the user can fix.
func told(where string, err error) error {
	if err == nil {
		return nil
	}
	err = closed(err)
	text := err.Error()
	for _, h := range hints {
		if strings.Contains(text, h.sign) && !strings.HasSuffix(text, h.todo) {
			err = fmt.Errorf("%w; %s", err, h.todo)
			break
		}
	}
	if strings.HasPrefix(text, where+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", where, err)
}

var hints = []struct{ sign, todo string }{
	{"WRONGPASS", "the user or the password is wrong"},
	{"NOAUTH", "put the password in KVFERRY_PASSWORD or a file that --password-file names"},
	{"invalid password", "the password is wrong"},
	{"without any password configured", "the server has no password: unset KVFERRY_PASSWORD"},
	{"OOM ", "the server's memory is full: raise its maxmemory, or leave something out; what was written stays"},
	{"ERR Function ", "a library of another name has that function: delete it on the server with FUNCTION DELETE"},
	{"READONLY", "this is a replica that takes no writes: use its master"},
	{"MISCONF", "the server cannot save to its disk and refuses writes: look at its log"},
	{"NOPERM", "the user lacks permissions: `kvferry help live` lists those that each use needs"},
	{"CROSSSLOT", "this is a server of a cluster: write redis+cluster://"},
	{"MOVED", "this is a server of a cluster: write redis+cluster://"},
	{"certificate", "name the certificate that signed it with --tls-ca"},
	{"connection refused", "nothing listens there"},
	{"redis: can't parse", errAnswer.Error()},
}
