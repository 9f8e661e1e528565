package versioned

import (
	"errors"
	"io"
	"testing"

	"kvferry/record"
)

// left counts the remaining batches, and ends with an error.
type left struct {
	Elements
	batches int
	err     error
}

func (l *left) Read([]record.Element) (int, error) {
	if l.batches == 0 {
		return 0, l.err
	}
	l.batches--
	return 1, nil
}

// TestDrain: the rest of a record is read to its end, or to an error.
func TestDrain(t *testing.T) {
	gone := errors.New("gone")
	for end, want := range map[error]error{io.EOF: nil, gone: gone} {
		l := &left{batches: 3, err: end}
		if err := Drain(l); err != want || l.batches != 0 {
			t.Errorf("%v: %v, %d batches are left", end, err, l.batches)
		}
	}
}
