// Package build writes the directories of RocksDB and LevelDB: tables whose rows lie in the last level, and the MANIFEST
// that makes them a database.
package build
