package convert

import "kvferry/record"

// wholeStrings returns the reader as one of several strings at once, unless they may expire while they are written. nil: it
// is none.
func (x *task) wholeStrings() record.StringReader {
	if x.lapse != nil {
		return nil
	}
	r, _ := x.reader.(record.StringReader)
	return r
}

// copyStrings moves the strings that come at once and returns how many; none when the next record is to be had by Next.
func (x *task) copyStrings(r record.StringReader) (int, error) {
	if r == nil {
		return 0, nil
	}
	batch, err := r.NextStrings()
	if err != nil || len(batch) == 0 {
		return 0, err
	}
	if err := x.share.takeStrings(batch); err != nil {
		return 0, err
	}
	from := 0
	for i := range batch {
		if x.keepsString(&batch[i]) {
			continue
		}
		if err := x.writeStrings(batch[from:i]); err != nil {
			return 0, err
		}
		from = i + 1
	}
	return len(batch), x.writeStrings(batch[from:])
}

// keepsString makes of a string what the target will have of it, and reports whether that is anything.
func (x *task) keepsString(s *record.StringRecord) bool {
	h := &x.header
	s.Header(h)
	h.DB, x.opaque = x.TargetDB, false
	if x.drops() {
		s.Class = record.Lost
		return false
	}
	if x.isTaken() {
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

// writeStrings writes strings as the target has them.
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
