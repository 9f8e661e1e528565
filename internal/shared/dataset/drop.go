package dataset

import "kvferry/record"

// Drop adds the counts of a row reader to t and closes it.
func Drop(it interface {
	Tally(*record.Tally)
	Close() error
}, t *record.Tally) error {
	it.Tally(t)
	return it.Close()
}
