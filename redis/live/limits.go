package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
)

const (
	// maxRestored and maxPayload limit the elements and bytes of a record sent as one RESTORE.
	maxRestored = 20000
	maxPayload  = 16 << 20
)

// limits are what a server can hold.
type limits struct {
	*dataset.Adapter
	ctx      context.Context
	server   *server.Server
	verified bool     // everything will be read back
	natives  sync.Map // reply of the server by module type and version, "" if it accepts the values
}

// newLimits returns the limits of a connected server, without further requests.
func newLimits(ctx context.Context, s *server.Server, verified bool) *limits {
	all := new(Format).Limits()
	l := &limits{Adapter: files.NewAdapter(all, s.Version, s.Name), ctx: ctx, server: s, verified: verified}
	l.OddRecord = l.oddRecord
	l.Odd[record.Other] = func(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
		return dataset.KeepIf(batch, func(e *record.Element) bool { return h.Keyless != record.Keyed || l.takes(e, report) })
	}
	if !s.Version.FieldExpiry() {
		l.Odd[record.Hash] = l.dropExpiries
	}
	return l
}

// oddRecord returns the loss of a value that no command creates.
func (l *limits) oddRecord(h *record.Header) []record.Loss {
	s := l.server
	switch {
	case h.Type != record.Other:
	case h.Keyless == record.Keyed && s.Restore: // depends on the value
	case h.Keyless != record.Library || !s.Since(7, 0):
		return []record.Loss{{Kind: record.LossModule, Drops: true, Detail: "no command creates it"}}
	}
	return nil
}

// Orphans returns the size up to which streams keep pending entries of deleted messages; -1: any (before Redis 7.0).
func (l *limits) Orphans() int64 {
	switch {
	case !l.server.Version.EntriesRead():
		return -1
	case !l.server.Restore:
		return 0
	}
	return maxPayload
}

// dropExpiries makes fields permanent, because the server does not support their expiry.
func (l *limits) dropExpiries(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	for i := range batch {
		if batch[i].ExpireMS != 0 {
			report(record.Loss{Kind: record.LossFieldExpiry,
				Detail: "field " + record.Quote(batch[i].Name) + ": " + l.server.Name + " does not support expiry of fields"})
			batch[i].ExpireMS = 0
		}
	}
	return batch
}

// moduleID is the length of the prefix of a module's value with its type and version.
const moduleID = 9

// vectorSet is the type name of vector sets.
const vectorSet = "vectorset"

// takes reports whether the server can load a value that only a module decodes, such as a vector set. It tries the
// first value of each type and version on the server.
func (l *limits) takes(e *record.Element, report func(record.Loss)) bool {
	if l.verified && string(e.Name) == vectorSet {
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: "a vector set, which --verify cannot compare: RESTORE changes the order of its nodes",
			Avoid: "leave out --verify to write vector sets"})
		return false
	}
	answer := "no command creates it"
	if rdb.IsModule(e) {
		id := string(e.Value[:min(moduleID, len(e.Value))])
		known, ok := l.natives.Load(id)
		if !ok {
			known = l.tryNative(e)
			l.natives.Store(id, known)
		}
		answer = known.(string)
	}
	if answer != "" {
		report(record.Loss{Kind: record.LossModule, Drops: true,
			Detail: fmt.Sprintf("a value of type %s: %s", record.Quote(e.Name), answer)})
	}
	return answer == ""
}

// tryNative restores the value with an expiry in the past: the server decodes and then drops it, or returns an error. A
// read-only replica cannot try it.
func (l *limits) tryNative(e *record.Element) string {
	payload := rdb.AppendDump(nil, rdb.TypeModule, l.server.Version, e.Value)
	r := l.server.Router("0")
	defer r.Close()
	_, err := r.Do(l.ctx, []byte(temporaryPrefix()+"probe"), "RESTORE", "1", payload, "REPLACE", "ABSTTL")
	var refused redis.Error
	if errors.As(err, &refused) && !server.IsBusy(err) && !strings.HasPrefix(string(refused), "READONLY") {
		return fmt.Sprintf("the server refuses it (%v)", err)
	}
	return "" // the write itself reports other errors
}
