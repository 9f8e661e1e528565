package versioned

import (
	"bytes"
	"fmt"

	"kvferry/record"
)

// begin takes what the header says of a stream.
func (s *StreamMeta) begin(h *record.Header) {
	copy(s.Last[:], h.Last)
}

// add takes an entry, whose id is to be above those before. What the header does not say is made good.
func (s *StreamMeta) add(key, id []byte, first bool) error {
	if len(id) != len(ID{}) {
		return fmt.Errorf("stream %s: an id of %d bytes", record.Quote(key), len(id))
	}
	if first {
		copy(s.First[:], id)
	}
	if bytes.Compare(id, s.Last[:]) > 0 {
		copy(s.Last[:], id)
	}
	return nil
}
