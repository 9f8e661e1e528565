// Package redistest runs a real redis-server for tests, on a free port of the loopback interface, with a small client
// that shares no code with the code under test.
package redistest
