package inspect

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"kvferry/record"
)

// commands is an encoder of one whole command a record, which fails at one of them.
type commands struct {
	size, fail, n int
}

var errUnwilling = errors.New("unwilling")

func (c *commands) AppendHead(dst []byte) []byte { return dst }

func (c *commands) AppendBegin(dst []byte, _ *record.Header) ([]byte, error) {
	if c.n++; c.n == c.fail {
		return dst, errUnwilling
	}
	return append(dst, bytes.Repeat([]byte{'x'}, c.size)...), nil
}

func (c *commands) AppendElement(dst []byte, _ *record.Element) ([]byte, error) { return dst, nil }
func (c *commands) AppendEnd(dst []byte) ([]byte, error)                        { return dst, nil }
func (c *commands) AppendTail(dst []byte) []byte                                { return dst }

// An error in the midst of a dump leaves whole commands with the reader, and its text is said once.
func TestDumpEndsWhole(t *testing.T) {
	a, _ := planted()
	const size = dumpBuffer/2 + 1000 // one fits into the buffer, two do not
	var out bytes.Buffer
	d := NewDumper(&out, &DumpOptions{Scan: scanOf(a), Encoder: &commands{size: size, fail: 4}})
	err := d.Run(context.Background())
	if !errors.Is(err, errUnwilling) || err.Error() != errUnwilling.Error() {
		t.Errorf("got %v", err)
	}
	if out.Len() != 3*size {
		t.Errorf("%d bytes are %d commands and %d bytes of another", out.Len(), out.Len()/size, out.Len()%size)
	}
	d = NewDumper(unwilling{}, &DumpOptions{Scan: scanOf(a), Encoder: &commands{size: size}})
	if err := d.Run(context.Background()); err == nil || err.Error() != errUnwilling.Error() {
		t.Errorf("a writer that fails: %v", err)
	}
}

// unwilling takes nothing.
type unwilling struct{}

func (unwilling) Write([]byte) (int, error) { return 0, errUnwilling }
