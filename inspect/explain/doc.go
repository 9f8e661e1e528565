// Package explain lists every physical row of one key, live or dead, and says why it is alive or dead: superseded, deleted,
// stale, expired, orphaned. It reads the key's records as every reader does, and looks up the rows in their keyspaces.
//
// Rows are handed out as they are found, range by range; a Result sums them up.
package explain
