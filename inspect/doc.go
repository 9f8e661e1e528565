// Package inspect reads datasets: it verifies them, compares them, takes their fingerprints, counts
// what is in them and explains single keys. It computes values; package render prints them.
//
// It knows formats and stores only by their interfaces, streams records and holds what it counts in
// bounded sketches.
package inspect
