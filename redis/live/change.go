package live

import "strconv"

// Delete deletes a key.
func (w *writer) Delete(key []byte) error {
	name := "DEL"
	if w.t.server.valkey || w.t.server.major >= 4 {
		name = "UNLINK" // large values are freed beside
	}
	return w.change(key, appendCommand(nil, []byte(name), key))
}

// Expire gives a key another expiry.
func (w *writer) Expire(key []byte, ms int64) error {
	if ms == 0 {
		return w.change(key, appendCommand(nil, []byte("PERSIST"), key))
	}
	return w.change(key, appendCommand(nil, []byte("PEXPIREAT"), key, strconv.AppendInt(nil, ms, 10)))
}

// change sends a command about a key, behind the records that were sent to it before.
func (w *writer) change(key, command []byte) error {
	if err := w.relocate(); err != nil {
		return err
	}
	p, err := w.pipe(key)
	if err != nil {
		return err
	}
	w.t.limit.wait(len(command))
	return w.told(p.add(command, 1, whole))
}
