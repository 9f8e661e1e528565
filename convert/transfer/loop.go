package transfer

import (
	"io"

	"kvferry/convert/workers"
	"kvferry/record"
)

// checkEvery is after how many records a loop pauses.
const checkEvery = 64

// loop reads records.
type loop struct {
	share *workers.Share
	pause func() error // every few records; an error ends the loop
}

// run hands over all records of a reader: strings several at a time, where they come so and may, and the others one by one.
func (l *loop) run(r record.Reader, together bool, strings func([]record.StringRecord) error, one func(*record.Header) error) error {
	var whole record.StringReader
	if together {
		whole, _ = r.(record.StringReader)
	}
	for seen := 0; ; {
		n, err := l.strings(whole, strings)
		if err == nil && n == 0 {
			n, err = 1, next(r, one)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if seen += n; seen >= checkEvery {
			seen = 0
			if err := l.pause(); err != nil {
				return err
			}
		}
	}
}

// strings hands over the strings that come at once and returns how many; none when the next record is to be had by Next.
func (l *loop) strings(r record.StringReader, do func([]record.StringRecord) error) (int, error) {
	if r == nil {
		return 0, nil
	}
	batch, err := r.NextStrings()
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	if err := l.share.TakeStrings(batch); err != nil {
		return 0, err
	}
	return len(batch), do(batch)
}

// next hands over the next record; io.EOF after the last.
func next(r record.Reader, do func(*record.Header) error) error {
	h, err := r.Next()
	if err != nil {
		return err
	}
	return do(h)
}
