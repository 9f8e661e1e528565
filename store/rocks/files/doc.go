// Package files reads the files of a database at offsets. It limits the number of open files, and all read-ahead
// buffers share one memory budget. It also reads OPTIONS files.
package files
