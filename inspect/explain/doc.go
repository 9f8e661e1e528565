// Package explain lists every physical row of one key and explains why it is live or dead: superseded, deleted,
// stale, expired or orphaned. It reads the key's records like any reader, and looks up the raw rows in their
// keyspaces.
//
// Rows are reported as they are found, range by range. A Result sums them up.
package explain
