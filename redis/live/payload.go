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

// payloadVersion checks the footer of a DUMP payload that was streamed: version u16 LE, checksum of all bytes before it.
func payloadVersion(p *summed) (uint16, error) {
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
	dataset.Report(c.options, record.Finding{Kind: files.DamageKind(err), Severity: record.Error, DB: db,
		Keyspace: files.Keyspace, Key: bytes.Clone(key),
		Place: record.InFile(c.server.Shown), Detail: detail + "; kvferry does not read it"})
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
