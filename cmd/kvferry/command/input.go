package command

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
)

// standard names standard input, or standard output for a file to write. ./- is a file of that name.
const standard = "-"

// toStandard reports whether an output flag means standard output.
func toStandard(path string) bool { return path == "" || path == standard }

// openInput opens a file named on the command line, or standard input.
func openInput(path string, stdin func() io.Reader) (io.ReadCloser, error) {
	if path == standard {
		return io.NopCloser(stdin()), nil
	}
	return openFile(path)
}

// inputFlags are the flags that accept standard input.
var inputFlags = []string{"key-file", "check", "against"}

// inputName is the argument name of a file to read.
const inputName = "FILE"

// oneInput makes every command refuse to read standard input twice: the second reader would find no data.
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

// notStandard refuses standard input for a flag whose file is read too early or more than once.
func notStandard(flag, path string) error {
	if path == standard {
		return usagef("--%s -: standard input is not read here: name a file (./- is a file of that name)", flag)
	}
	return nil
}
