// Package testsst writes the files of RocksDB and LevelDB by hand, for tests: every byte is put there on purpose, damaged
// ones too. What frames and encodes is
// written down a second time here, so that tests do not rely on what they test.
package testsst
