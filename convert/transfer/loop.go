package transfer

import (
	"io"

	"kvferry/convert/workers"
	"kvferry/record"
)

// checkEvery is the number of records or batches between pauses.
const checkEvery = 64

// loop reads records.
type loop struct {
	share *workers.Share
	pause func() error // called every checkEvery records; an error ends the loop
}

// run passes all records of a reader to strings or one. If together is set and r is a record.StringReader, strings
// arrive in batches.
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

// strings passes on one batch of strings and returns its length. The length is 0 if the next record must be read with
// Next.
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

// next passes on the next record. It returns io.EOF after the last one.
func next(r record.Reader, do func(*record.Header) error) error {
	h, err := r.Next()
	if err != nil {
		return err
	}
	return do(h)
}
