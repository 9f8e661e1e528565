// Scan is the baseline for reading commands: a bare scan of all rows with kvferry's own reader, and a bare buffered
// writer.
//
//	scan DIR             walk over the rows of all databases below DIR
//	scan -write FILE N   write N bytes to a new file through a buffer
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"kvferry/ardb/codec"
	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/store"
	"kvferry/store/rocks"
)

func main() {
	err := fmt.Errorf("usage: scan DIR | scan -write FILE N")
	switch {
	case len(os.Args) == 2:
		err = scanAll(os.Args[1])
	case len(os.Args) == 4 && os.Args[1] == "-write":
		var n int64
		if n, err = strconv.ParseInt(os.Args[3], 10, 64); err == nil {
			err = write(os.Args[2], n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scan:", err)
		os.Exit(1)
	}
}

func scanAll(root string) error {
	var rows, size int64
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "CURRENT" {
			return err
		}
		return scan(filepath.Dir(path), &rows, &size)
	})
	if err == nil && rows == 0 {
		err = fmt.Errorf("%s: no rows", root)
	}
	fmt.Printf("{\"rows\":%d,\"bytes\":%d}\n", rows, size)
	return err
}

func scan(dir string, rows, size *int64) error {
	st, err := rocks.Open(context.Background(), dir, &store.Options{
		Comparers: slices.Concat(blackwidow.Comparers(), floyd.Comparers(), []store.Comparer{codec.Comparer()}),
	})
	if err != nil {
		return err
	}
	defer st.Close()
	for _, ks := range st.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return err
		}
		for {
			key, value, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			*rows++
			*size += int64(len(key) + len(value))
		}
		if err := it.Close(); err != nil {
			return err
		}
	}
	return nil
}

// lineSize is about the size of a dump line.
const lineSize = 256

func write(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	line := make([]byte, lineSize)
	for ; n > 0; n -= lineSize {
		if _, err := w.Write(line[:min(n, lineSize)]); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
