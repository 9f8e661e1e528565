package kvferry

import (
	"cmp"
	"context"

	"kvferry/format"
	"kvferry/inspect/compare"
	"kvferry/inspect/stats"
)

// DiffOptions control a comparison. The zero value compares all records that have not expired.
type DiffOptions struct {
	// Filter selects the same records of both datasets, databases by their names in the first.
	Filter *Filter
	// Map matches databases whose names differ.
	Map compare.DBMap
	// Tell is called for each difference, in order; nil only counts. An error ends the comparison: Diff returns it,
	// except compare.ErrEnough.
	Tell func(*compare.Difference) error
}

// Diff compares two datasets of any formats, like kvferry diff. If their fingerprints are equal, records are not compared
// one by one. In lists it finds inserted and removed items.
func (d *Dataset) Diff(ctx context.Context, other *Dataset, o *DiffOptions) (*compare.Result, error) {
	if o == nil {
		o = new(DiffOptions)
	}
	sel, err := o.Filter.selection(d.o.Now)
	if err != nil {
		return nil, err
	}
	tell := o.Tell
	if tell == nil {
		tell = func(*compare.Difference) error { return nil }
	}
	a, b := d.scanOf(sel), other.scanOf(sel)
	b.Now = a.Now
	a.Memory, b.Memory = a.Memory/2, b.Memory/2 // two datasets share the memory of one
	res, err := compare.Diff(ctx, &compare.Options{A: a, B: b, Map: o.Map, Tell: tell})
	return res, d.files.Err(other.files.Err(err))
}

// InspectOptions control an inspection. The zero value has the defaults of the command line.
type InspectOptions struct {
	// Filter selects records; nil selects all that have not expired.
	Filter *Filter
	// Top is the number of largest keys and prefixes to list; 0 means 20, and a negative number none.
	Top int
	// Delimiter separates the parts of keys; "" finds it: a colon, slash or bar, or a dot in keys without those. Depth
	// is the number of parts in a prefix; 0 means 16.
	Delimiter string
	Depth     int
	// Redis estimates the memory that the records would take in Redis. It is always on for Redis files and servers.
	Redis bool
}

// Inspect counts what is in the dataset, like kvferry inspect.
func (d *Dataset) Inspect(ctx context.Context, o *InspectOptions) (*stats.Result, error) {
	if o == nil {
		o = new(InspectOptions)
	}
	scan, err := d.scan(o.Filter)
	if err != nil {
		return nil, err
	}
	res, err := stats.Collect(ctx, &stats.Options{Scan: *scan, Location: d.found.Given, Stores: d.stores,
		Top: max(0, cmp.Or(o.Top, 20)), Delimiter: cmp.Or(o.Delimiter, stats.Auto),
		Depth: o.Depth, Redis: o.Redis || d.source.Format().Limits().Place != format.InDirectory})
	return res, d.files.Err(err)
}
