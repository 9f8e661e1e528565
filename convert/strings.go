package convert

import "kvferry/record"

// strings moves strings that come at once.
func (x *task) strings(batch []record.StringRecord) error {
	from := 0
	for i := range batch {
		if x.keepsString(&batch[i]) {
			continue
		}
		if err := x.writeStrings(batch[from:i]); err != nil {
			return err
		}
		from = i + 1
	}
	return x.writeStrings(batch[from:])
}

// keepsString makes of a string what the target will have of it, and reports whether that is anything.
func (x *task) keepsString(s *record.StringRecord) bool {
	h := &x.header
	s.Header(h)
	h.DB = x.TargetDB
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
