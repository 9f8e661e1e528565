package dataset

import "kvferry/record"

// Drop takes the counts of what rows were read from and closes it.
func Drop(it interface {
	Tally(*record.Tally)
	Close() error
}, t *record.Tally) error {
	it.Tally(t)
	return it.Close()
}
