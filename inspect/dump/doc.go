// Package dump writes the records of a dataset as text in key order, using an Encoder. It dumps live records, or
// deleted records whose rows are still on disk. Rows lists physical rows as the store returns them.
//
// A value is never held as a whole if the encoder can write it in pieces.
package dump
