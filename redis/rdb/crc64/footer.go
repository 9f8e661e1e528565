package crc64

import (
	"encoding/binary"
	"errors"

	"kvferry/record"
)

// footer is what ends a payload: a version (LE16) and CRC64 (LE) of all before.
const footer = 10

// CutFooter returns what a payload of DUMP or FUNCTION DUMP holds without its footer, and the version in that. A checksum of 0
// is none, which unsummed allows: only the replication stream of Redis 8.10 has such payloads.
func CutFooter(payload []byte, unsummed bool) (body []byte, version uint16, err error) {
	if len(payload) < footer {
		return nil, 0, record.Short(0, "payload", footer, len(payload))
	}
	end := len(payload) - 8
	if sum := binary.LittleEndian.Uint64(payload[end:]); sum != Update(0, payload[:end]) && (sum != 0 || !unsummed) {
		return nil, 0, &record.CorruptError{Off: int64(end), Field: "checksum", Err: errors.New("is wrong")}
	}
	return payload[:end-2], binary.LittleEndian.Uint16(payload[end-2:]), nil
}
