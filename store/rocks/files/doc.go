// Package files reads the files of a database at offsets: a bounded number is open at a time, and all that read ahead share
// one budget of memory.
package files
