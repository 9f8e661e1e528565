// Package live reads and writes servers of Redis and Valkey, standalone and clusters.
//
// Queries go through github.com/gomodule/redigo. Bulk loading does not: like redis-cli --pipe, one goroutine writes a
// stream of commands and another reads the replies, with a bound on the unacknowledged bytes (pipe). Bytes stay in
// memory until the server acknowledges them, so the pipe can reconnect and resend them: all pieces but RENAME are
// idempotent, and the pipe checks whether an unanswered RENAME took effect.
//
// A small record goes as one RESTORE of a payload built here in the newest RDB version that the server accepts, which
// costs the server a third less time than commands. A large record goes as commands of bounded size to a temporary name
// in the same slot, then RENAME: clients never see a partial value, and the server can serve them between commands.
package live
