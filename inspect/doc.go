// Package inspect verifies, compares, fingerprints, dumps and counts datasets, and explains single
// keys. It computes values; package render prints them.
//
// It uses formats and stores only through their interfaces, streams records, and counts in sketches
// of bounded size.
package inspect
