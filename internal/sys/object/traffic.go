package object

import (
	"io"
	"net/http"
	"sync/atomic"

	"kvferry/record"
)

// Traffic counts requests to object stores and web servers, repeated ones included, and the bytes of their bodies:
// stores bill both.
type Traffic struct{ requests, read, written atomic.Int64 }

// Counts are the counts of a Traffic at some time.
type Counts struct {
	Requests int64 `json:"requests"`
	Read     int64 `json:"bytes_read"`
	Written  int64 `json:"bytes_written,omitempty"`
}

// Counts returns the counts until now; nil if there was no request.
func (t *Traffic) Counts() *Counts {
	if t == nil || t.requests.Load() == 0 {
		return nil
	}
	return &Counts{t.requests.Load(), t.read.Load(), t.written.Load()}
}

// String returns the counts for messages.
func (c *Counts) String() string {
	out := record.Count(c.Requests, "request") + ", " + record.Bytes(c.Read) + " read"
	if c.Written > 0 {
		out += ", " + record.Bytes(c.Written) + " written"
	}
	return out
}

// counted counts the requests of a transport.
type counted struct {
	*http.Transport
	traffic *Traffic
}

// RoundTrip sends a request.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.traffic.requests.Add(1)
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the caller's request is not changed
		r.Body = &countedBody{r.Body, &c.traffic.written}
	}
	answer, err := c.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = &countedBody{answer.Body, &c.traffic.read}
	}
	return answer, err
}

// countedBody counts the bytes of a body as they pass.
type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

// Read reads the next bytes.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
