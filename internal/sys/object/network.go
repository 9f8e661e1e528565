package object

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

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
