// Package testsst writes files of RocksDB and LevelDB by hand for tests, intact or damaged. It has its own encoders
// and framing, so that tests do not depend on the code under test.
package testsst
