package live

import (
	"errors"
	"strconv"
	"strings"

	"kvferry/record"
)

// Delete deletes a key or a function library. A module's data outside its values stays: no command deletes it.
func (w *writer) Delete(h *record.Header) error {
	switch {
	case h.Keyless == record.Library:
		return w.deleteLibrary(string(h.Keyless.Name(h.Key)))
	case h.Keyless != record.Keyed:
		return nil
	}
	name := "DEL"
	if w.t.server.valkey || w.t.server.major >= 4 {
		name = "UNLINK" // frees large values in the background
	}
	return w.change(h.Key, appendCommand(nil, []byte(name), h.Key))
}

// deleteLibrary deletes a function library on each server.
func (w *writer) deleteLibrary(name string) error {
	for _, host := range w.t.hosts() {
		client := w.t.server.to(host, "0")
		_, err := client.do(w.ctx, "FUNCTION", "DELETE", name)
		if err != nil && strings.Contains(err.Error(), "Library not found") {
			err = nil
		}
		if err = errors.Join(err, client.close()); err != nil {
			return told(host, err)
		}
	}
	return nil
}

// Expire sets or removes the expiry of a key.
func (w *writer) Expire(key []byte, ms int64) error {
	if ms == 0 {
		return w.change(key, appendCommand(nil, []byte("PERSIST"), key))
	}
	return w.change(key, appendCommand(nil, []byte("PEXPIREAT"), key, strconv.AppendInt(nil, ms, 10)))
}

// change sends a command for a key, after all records sent before for this key.
func (w *writer) change(key, command []byte) error {
	if err := w.relocate(); err != nil {
		return err
	}
	p, err := w.pipe(key)
	if err != nil {
		return err
	}
	if err := w.t.limit.Wait(w.ctx, len(command)); err != nil {
		return err
	}
	return w.told(p.add(command, piece{commands: 1}))
}
