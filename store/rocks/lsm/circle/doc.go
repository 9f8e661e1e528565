// Package circle repeats LevelDB where a comparer is no order (store.Wrapping) and the logs hold keys that show it: what
// the engine's memtable and iterator made of such keys is what its server showed. See circle.go.
//
// A Set wraps a keyspace of package lsm, which does not know of it: between the circles its rows are the keyspace's.
package circle
