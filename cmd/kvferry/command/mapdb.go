package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect/compare"
	"kvferry/internal/text/suggest"
)

// sideFlags are the flags of comparisons that apply to one side. --wal-dir applies to the first.
type sideFlags struct {
	dbs    mapFlag
	walDir string // of the second side
}

// secondWAL names the flag for the logs of the second side.
const secondWAL = "wal-dir-b"

// Register adds the flags to a command.
func (f *sideFlags) Register(fs *pflag.FlagSet) {
	f.dbs.Register(fs)
	fs.StringVar(&f.walDir, secondWAL, "", "`directory` of the write-ahead logs of the second dataset, like --wal-dir for the first")
}

// second returns the flags for reading the second side.
func (f *sideFlags) second(read ReadFlags) *ReadFlags {
	read.source.walDir, read.source.walFlag = f.walDir, secondWAL
	read.source.connect.second = true
	return &read
}

// mapFlag lists pairs of databases to compare despite different names, each as A=B.
type mapFlag struct{ dbs compare.DBMap }

// Register adds the flag to a command.
func (f *mapFlag) Register(fs *pflag.FlagSet) {
	fs.Var(f, "map-db", "compare database A of the first dataset, or of the --check file, with database B of the other one; repeatable")
}

// Set adds a pair. The last = separates it: names that a conversion assigns contain none.
func (f *mapFlag) Set(s string) error {
	at := strings.LastIndexByte(s, '=')
	if at < 0 {
		return errors.New("want A=B, the names of a database on the two sides")
	}
	return f.dbs.Add(compare.DBNames{A: s[:at], B: s[at+1:]})
}

// Type names the flag's values in help texts.
func (f *mapFlag) Type() string { return "A=B" }

// String formats the pairs.
func (f *mapFlag) String() string {
	var out []string
	for _, n := range f.dbs {
		out = append(out, n.String())
	}
	return strings.Join(out, ",")
}

// tellUnmatched lists databases without a counterpart if both sides have some: they may belong together.
func tellUnmatched(w io.Writer, pairs []compare.DBPair) {
	var a, b []string
	for _, p := range pairs {
		switch {
		case !p.InB:
			a = append(a, p.A)
		case !p.InA:
			b = append(b, p.B)
		}
	}
	if len(a) == 0 || len(b) == 0 {
		return
	}
	fmt.Fprintf(w, "kvferry: databases only in A: %s; only in B: %s; to compare two of them with each other, use --map-db A=B\n",
		suggest.Quoted(a), suggest.Quoted(b))
}

// mapUsage turns an error about --map-db into a usage error.
func mapUsage(err error) error {
	if wrong, ok := errors.AsType[*compare.DBMapError](err); ok {
		return cli.Usagef("--map-db %w", wrong)
	}
	if unnumbered, ok := errors.AsType[*compare.NumberError](err); ok {
		return cli.Usagef("%w", unnumbered)
	}
	return err
}
