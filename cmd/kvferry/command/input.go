package command

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
)

// standard is what a command line calls standard input, or standard output where a file is written. ./- is a file of
// that name.
const standard = "-"

// toStandard reports whether a flag that names a file to write leads to standard output.
func toStandard(path string) bool { return path == "" || path == standard }

// openInput opens a file that a command line names, or standard input.
func openInput(path string, stdin func() io.Reader) (io.ReadCloser, error) {
	if path == standard {
		return io.NopCloser(stdin()), nil
	}
	return openFile(path)
}

// inputFlags are the flags that can name standard input.
var inputFlags = []string{"key-file", "check", "against"}

// inputName is what a command calls an argument that is a file to read.
const inputName = "FILE"

// oneInput makes every command refuse to read standard input twice: it would be at its end the second time.
func oneInput(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		run, names := cmd.RunE, argNames(cmd)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			var readers []string
			for i, arg := range args {
				if i < len(names) && (isSource(names[i]) || names[i] == inputName) && fromStandard(arg) {
					readers = append(readers, arg)
				}
			}
			cmd.Flags().Visit(func(f *pflag.Flag) {
				for _, name := range inputFlags {
					if f.Name == name && fromStandard(f.Value.String()) {
						readers = append(readers, "--"+name+" "+f.Value.String())
					}
				}
			})
			if len(readers) > 1 {
				return usagef("%s: standard input can be read only once: write one of them to a file", strings.Join(readers, " and "))
			}
			return run(cmd, args)
		}
	}
}

// fromStandard reports whether a file or a location is standard input.
func fromStandard(name string) bool {
	loc, err := catalog.ParseLocation(name)
	return err == nil && loc.Path == standard
}

// notStandard refuses standard input for a flag whose file is read before, or more often than, it could be.
func notStandard(flag, path string) error {
	if path == standard {
		return usagef("--%s -: standard input is not read here: name a file (./- is a file of that name)", flag)
	}
	return nil
}
