package live

import (
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"kvferry/record"
)

// Delete deletes the key of a record, or a library of functions. No command deletes what a module keeps beside its values.
func (w *writer) Delete(h *record.Header) error {
	switch {
	case h.Keyless == record.Library:
		return w.deleteLibrary(string(h.Keyless.Name(h.Key)))
	case h.Keyless != record.Keyed:
		return nil
	}
	name := "DEL"
	if w.t.server.valkey || w.t.server.major >= 4 {
		name = "UNLINK" // large values are freed beside
	}
	return w.change(h.Key, appendCommand(nil, []byte(name), h.Key))
}

// deleteLibrary deletes a library from each server.
func (w *writer) deleteLibrary(name string) error {
	for _, host := range w.t.hosts() {
		client := redis.NewClient(w.t.server.single(host, 0))
		err := client.FunctionDelete(w.ctx, name).Err()
		if err != nil && strings.Contains(err.Error(), "Library not found") {
			err = nil
		}
		if err = errors.Join(err, client.Close()); err != nil {
			return told(host, err)
		}
	}
	return nil
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
	if err := w.t.limit.wait(w.ctx, len(command)); err != nil {
		return err
	}
	return w.told(p.add(command, 1, whole))
}
