// Package versioned is the mechanism of formats with meta rows, versions and data rows: nemo, blackwidow, floyd, kvrocks.
//
// A record is a meta row and, unless it is a string, data rows. The meta row has a count, an expiry and a version; data
// rows have the user key and a version, and those of another version than the meta row's are garbage of an earlier life.
//
//	keyspace of meta rows    user key            -> count, version, expiry
//	keyspace of data rows    user key version …  -> …
//	keyspace of index rows   user key version score member   (of zsets)
//
// A format provides a Layout: functions that encode and decode its keys and values by type. It gets a reader that walks
// the meta rows and keeps cursors of data rows in step, the ledger and the findings, ranges and samples, deleted
// records, and a writer. All formats share these rules:
//
//   - Meta rows ascend by user key. Data rows do so within the lanes of a key length (package keylanes), or as a whole.
//   - A row that belongs to no record is an orphan; a row of an older version is stale; a row below a meta row without
//     elements is deleted. Each row gets one class.
//   - A zset's index is compared with its members by sums of hashes, and read again only if they differ.
//
// A store holds one type (nemo, blackwidow) or all of them (floyd, kvrocks); types may share the keyspace of data rows (kvrocks).
package versioned
