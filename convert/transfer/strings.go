package transfer

import (
	"bytes"

	"kvferry/record"
)

// strings moves a batch of strings.
func (x *task) strings(batch []record.StringRecord) error {
	from := 0
	for i := 0; i < len(batch); {
		if n := x.unchanged(batch[i:]); n > 0 {
			i += n
			continue
		}
		if i++; x.keepsString(&batch[i-1]) {
			continue
		}
		if err := x.writeStrings(batch[from : i-1]); err != nil {
			return err
		}
		from = i
	}
	return x.writeStrings(batch[from:])
}

// unchanged returns the length of the prefix of a batch that the target takes without changes, and sets its database.
func (x *task) unchanged(batch []record.StringRecord) int {
	if !x.Group.Has(record.String) {
		return 0
	}
	n := x.target.Unchanged(batch)
	if !x.SameName {
		n = x.takeNames(batch[:n])
	}
	for i := range batch[:n] {
		batch[i].DB = x.TargetDB
	}
	return n
}

// takeNames takes the names of the strings of a batch, up to the first name that is taken, and returns their number.
func (x *task) takeNames(batch []record.StringRecord) int {
	if len(batch) == 0 || x.isTaken(batch[0].Key) {
		return 0
	}
	n := 1
	for n < len(batch) && !bytes.Equal(batch[n-1].Key, batch[n].Key) {
		n++
	}
	x.takeName(batch[n-1].Key)
	return n
}

// keepsString adapts a string to the target and reports whether it is kept.
func (x *task) keepsString(s *record.StringRecord) bool {
	h := &x.header
	s.Header(h)
	h.DB = x.TargetDB
	if x.drops() {
		s.Class = record.Lost
		return false
	}
	if x.isTaken(h.Key) {
		s.Class = x.giveName()
		return false
	}
	one := x.batch[:1]
	one[0] = record.Element{Value: s.Value}
	if len(x.target.ElementLosses(h, one, x.report)) == 0 {
		s.Class = record.Lost
		return false
	}
	s.DB, s.Value, s.ExpireMS = h.DB, one[0].Value, h.ExpireMS
	x.takeName(s.Key)
	return true
}

// writeStrings hashes and writes adapted strings.
func (x *task) writeStrings(batch []record.StringRecord) error {
	if len(batch) == 0 {
		return nil
	}
	x.hasher.Strings(&x.digests[record.String], batch)
	x.gauge.Strings(batch)
	switch w := x.writer.(type) {
	case nil:
		return nil
	case record.StringWriter:
		return w.WriteStrings(batch)
	}
	return record.WriteStrings(x.writer, batch)
}
