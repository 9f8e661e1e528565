package live

import (
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// moduleID is the length of the prefix of a module's value with its type and version.
const moduleID = 9

// vectorSet is the type name of vector sets.
const vectorSet = "vectorset"

// takes reports whether the server can load a value that only a module decodes, such as a vector set. It tries the
// first value of each type and version on the server.
func (t *target) takes(e *record.Element, report func(record.Loss)) bool {
	if t.options.Reopen != nil && string(e.Name) == vectorSet {
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: "a vector set, which --verify cannot compare: RESTORE stores its nodes in another order",
			Avoid: "leave out --verify to write vector sets"})
		return false
	}
	answer := "no command creates it"
	if rdb.IsModule(e) {
		id := string(e.Value[:min(moduleID, len(e.Value))])
		known, ok := t.natives.Load(id)
		if !ok {
			known = t.tryNative(e)
			t.natives.Store(id, known)
		}
		answer = known.(string)
	}
	if answer != "" {
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: fmt.Sprintf("a value of type %s: %s", record.Quote(e.Name), answer)})
	}
	return answer == ""
}

// tryNative restores the value with an expiry in the past: the server decodes and then drops it, or returns an error.
func (t *target) tryNative(e *record.Element) string {
	payload := rdb.AppendDump(nil, rdb.TypeModule, t.server.version, e.Value)
	r := t.router("0")
	defer r.close()
	_, err := r.do(t.ctx, []byte(t.start.Names+"probe"), "RESTORE", "1", payload, "REPLACE", "ABSTTL")
	var refused redis.Error
	if errors.As(err, &refused) && !isBusy("-"+err.Error()) {
		return fmt.Sprintf("the server refuses it (%v)", err)
	}
	return "" // the write itself reports other errors
}
