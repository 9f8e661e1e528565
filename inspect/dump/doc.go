// Package dump writes the records of a dataset as text, in key order and by an Encoder: the live ones, or deleted ones whose
// rows are still on disk. Rows lists the rows themselves, as the store shows them.
//
// A value is never held as a whole if the encoder can write it in pieces.
package dump
