package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
)

// payload streams a DUMP payload to the spool without its footer: version u16 LE, checksum of all bytes before it.
type payload struct {
	to   io.Writer
	held []byte // possibly the footer
	sum  uint64 // checksum of the bytes passed on
}

// Write streams the next bytes of the payload.
func (p *payload) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	n := len(p.held) - crc64.FooterLen
	if n <= 0 {
		return len(b), nil
	}
	if _, err := p.to.Write(p.held[:n]); err != nil {
		return 0, err
	}
	p.sum = crc64.Update(p.sum, p.held[:n])
	p.held = append(p.held[:0], p.held[n:]...)
	return len(b), nil
}

// end checks the footer and returns its version.
func (p *payload) end() (version uint16, err error) {
	if len(p.held) != crc64.FooterLen {
		return 0, badPayload("it is shorter than its footer")
	}
	if want := binary.LittleEndian.Uint64(p.held[2:]); want != 0 && want != crc64.Update(p.sum, p.held[:2]) {
		return 0, badPayload("its checksum is wrong")
	}
	return binary.LittleEndian.Uint16(p.held), nil
}

func badPayload(text string) error {
	return &record.CorruptError{Off: record.NoOffset, Field: "payload", Err: errors.New(text)}
}

// maxInMemory is the largest payload that is buffered whole.
const maxInMemory = 1 << 20

// take reads the payload of a key with expiry ms. It reports and skips a value that this build cannot read.
func (f *fetcher) take(in io.Reader, size int64, key []byte, ms int64) error {
	f.head = append(f.head[:0], make([]byte, min(size, maxInMemory))...)
	if _, err := io.ReadFull(in, f.head); err != nil {
		return err
	}
	body, version, whole := f.head, uint16(f.server.version.Number), size <= maxInMemory
	if whole {
		var err error
		if body, version, err = crc64.CutFooter(f.head, true); err != nil {
			return aboutKey(key, err)
		}
	}
	d, err := rdb.OpenDump(body, version)
	if whole {
		if err != nil {
			return f.unread(f.db, key, err)
		}
		f.to.newer(d.Header)
		_, err = f.to.Write(append(f.lead(&d, key, ms), body[d.Off:]...))
		return err
	}
	return f.large(in, size-int64(len(f.head)), &d, key, ms)
}

// lead returns the bytes before a value in the spool: module metadata, expiry, type and key.
func (f *fetcher) lead(d *rdb.Dump, key []byte, ms int64) []byte {
	return rdb.AppendKey(bytes.Clone(f.head[:d.Off-1]), d.Type, key, f.expiry(ms))
}

// large streams a payload that begins with f.head to the spool, and checks it there.
func (f *fetcher) large(in io.Reader, left int64, d *rdb.Dump, key []byte, ms int64) error {
	from := f.to.n
	if _, err := f.to.Write(f.lead(d, key, ms)); err != nil {
		return err
	}
	p := payload{to: f.to, sum: crc64.Update(0, f.head[:d.Off])}
	if _, err := p.Write(f.head[d.Off:]); err != nil {
		return err
	}
	if _, err := io.CopyN(&p, in, left); err != nil {
		return err
	}
	version, err := p.end()
	if err == nil {
		err = f.to.w.Flush()
	}
	if err != nil {
		return aboutKey(key, err)
	}
	h := rdb.PayloadHeader(version)
	if err := onlyItems(f.to.f, h, from, f.to.n, rdb.OpKey); err != nil {
		if err := f.to.back(from); err != nil {
			return err
		}
		return f.unread(f.db, key, err)
	}
	f.to.newer(h)
	return nil
}

// onlyItems checks that a range holds only items of one kind and AUX fields.
func onlyItems(r io.ReaderAt, h rdb.Header, from, to int64, op rdb.Op) error {
	s := rdb.Section(r, h, 0, from, to)
	for {
		it, err := s.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case it.Op != op && it.Op != rdb.OpAux:
			return fmt.Errorf("an item of another kind: %w", rdb.ErrNewer)
		}
	}
}

// unread reports a value, or with a nil key all function libraries, that kvferry cannot read.
func (c *copier) unread(db string, key []byte, err error) error {
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) && !errors.Is(err, rdb.ErrNewer) {
		return err
	}
	detail := err.Error()
	if corrupt != nil && key != nil {
		detail = corrupt.Reason()
	}
	dataset.Report(c.options, record.Finding{Kind: files.DamageKind(err), Severity: record.Error, DB: db, Keyspace: files.Keyspace, Key: bytes.Clone(key),
		Place: record.Place{File: c.server.shown, Off: record.NoOffset, Level: -1}, Detail: detail + "; kvferry does not read it"})
	return nil
}

// libraries adds the answer of FUNCTION DUMP to the spool.
func (c *copier) libraries(b []byte) error {
	body, version, err := crc64.CutFooter(b, true)
	if err != nil {
		return err
	}
	h := rdb.PayloadHeader(version)
	if err := onlyItems(bytes.NewReader(body), h, 0, int64(len(body)), rdb.OpFunction); err != nil {
		return c.unread("", nil, fmt.Errorf("function libraries: %w", err))
	}
	c.to.newer(h)
	_, err = c.to.Write(body)
	return err
}
