// Package redistest runs a real redis-server for tests, on a free port of the loopback, with a small client of its own
// that shares no code with what is tested.
package redistest
