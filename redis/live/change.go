package live

import (
	"strconv"
	"strings"

	"kvferry/internal/text/resp"
	"kvferry/record"
	"kvferry/redis/live/server"
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
	if w.server.Since(4, 0) {
		name = "UNLINK" // frees large values in the background
	}
	return w.change(h.Key, resp.AppendCommand(nil, []byte(name), h.Key))
}

// deleteLibrary deletes a function library on each server.
func (w *writer) deleteLibrary(name string) error {
	return w.server.Each(w.server.Hosts(), func(_ string, c *server.Client) error {
		_, err := c.Do(w.pipes.Ctx, "FUNCTION", "DELETE", name)
		if err != nil && strings.Contains(err.Error(), "Library not found") {
			return nil
		}
		return err
	})
}

// Expire sets or removes the expiry of a key.
func (w *writer) Expire(key []byte, ms int64) error {
	if ms == 0 {
		return w.change(key, resp.AppendCommand(nil, []byte("PERSIST"), key))
	}
	return w.change(key, resp.AppendCommand(nil, []byte("PEXPIREAT"), key, strconv.AppendInt(nil, ms, 10)))
}

// change sends a command for a key, after all records sent before for this key.
func (w *writer) change(key, command []byte) error {
	if err := w.pipes.Relocate(); err != nil {
		return err
	}
	return w.send(w.pipes.Of(key), command, server.Piece{Commands: 1})
}
