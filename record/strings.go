package record

// StringWriter is a Writer that accepts several strings at once, instead of Begin, Write and End for each.
type StringWriter interface {
	Writer
	// WriteStrings writes complete strings. It does not retain them.
	WriteStrings(batch []StringRecord) error
}

// WriteStrings writes strings to w one by one.
func WriteStrings(w Writer, batch []StringRecord) error {
	var h Header
	var e [1]Element
	for i := range batch {
		batch[i].Header(&h)
		if err := w.Begin(&h); err != nil {
			return err
		}
		e[0].Value = batch[i].Value
		if err := w.Write(e[:]); err != nil {
			return err
		}
		if err := w.End(); err != nil {
			return err
		}
	}
	return nil
}
