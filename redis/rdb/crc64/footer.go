package crc64

import (
	"encoding/binary"
	"errors"

	"kvferry/record"
)

// FooterLen is the length of a payload's footer: a version u16 LE, and the checksum u64 LE of all bytes before it.
const FooterLen = 10

// CutFooter returns a DUMP or FUNCTION DUMP payload without its footer, and the footer's version. unsummed accepts the
// checksum 0 (not computed), which Redis 8.4 and later write to the log and the replication stream while they import slots.
func CutFooter(payload []byte, unsummed bool) (body []byte, version uint16, err error) {
	if len(payload) < FooterLen {
		return nil, 0, record.Short(0, "payload", FooterLen, len(payload))
	}
	end := len(payload) - 8
	if sum := binary.LittleEndian.Uint64(payload[end:]); sum != Update(0, payload[:end]) && (sum != 0 || !unsummed) {
		return nil, 0, &record.CorruptError{Off: int64(end), Field: "checksum", Err: errChecksum}
	}
	return payload[:end-2], binary.LittleEndian.Uint16(payload[end-2:]), nil
}

var errChecksum = errors.New("is wrong")
