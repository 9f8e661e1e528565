package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"kvferry/internal/sys/disk"
	"kvferry/internal/text/suggest"
)

// AllFlags applies the flags of a job file and refuses empty names.
func AllFlags(cmd *cobra.Command, path string) error {
	if err := checkNames(cmd.Flags()); err != nil { // the name of the job file itself
		return err
	}
	if err := applyJob(cmd, path); err != nil {
		return err
	}
	return checkNames(cmd.Flags())
}

// checkNames refuses flags that name a file, directory, dataset or database but have an empty value, as from an unset
// shell variable. The command would ignore such a --check, --against or --key-file instead of doing what was asked.
func checkNames(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if !f.Changed { // -f named an output format
			return
		}
		what, _ := pflag.UnquoteUsage(f)
		text := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text = strings.Join(list.GetSlice(), ",")
		}
		if text == "" && slices.Contains([]string{"file", "directory", "location", "name"}, what) {
			err = cmp.Or(err, Usagef("--%s: no %s is given: the value is empty", f.Name, what))
		}
	})
	return err
}

// jobArguments are the job file's names for arguments of a command.
var jobArguments = []string{"source", "target"}

// jobFile returns the path of the job file, or "".
func jobFile(cmd *cobra.Command) string {
	if f := cmd.Flag("file"); f != nil {
		return f.Value.String()
	}
	return ""
}

// formatOfJob reads -f NAME as --format NAME where the command has that output format and no file has that name.
func formatOfJob(cmd *cobra.Command) error {
	file, name := cmd.Flag("file"), jobFile(cmd)
	if !slices.Contains(formatsOf(cmd), name) || cmd.Flag("format").Changed {
		return nil
	}
	if _, err := disk.Lstat(name); err == nil {
		return nil
	}
	file.Changed = false
	if err := file.Value.Set(""); err != nil {
		return err
	}
	return cmd.Flags().Set("format", name)
}

// formatsOf lists the output formats of a command.
func formatsOf(cmd *cobra.Command) []string {
	f := cmd.Flag("format")
	if f == nil {
		return nil
	}
	return strings.Split(f.Value.Type(), "|")
}

// JobArgs returns the arguments of a command. Those missing on the command line are taken from the job file.
func JobArgs(cmd *cobra.Command, args []string) ([]string, error) {
	path, names := jobFile(cmd), ArgNames(cmd)
	if path == "" || len(args) >= len(names) {
		return args, nil
	}
	root, err := ParseJob(path)
	if err != nil {
		return nil, err
	}
	for len(args) < min(len(names), len(jobArguments)) {
		value := At(root, jobArguments[len(args)])
		if value == nil {
			break
		}
		args = append(args, value.Value)
	}
	return args, countArgs(cmd, args)
}

// applyJob sets the flags that a YAML file gives and the command line does not. The keys are flag names:
//
//	type: [hash, zset]
//	memory: 1GiB
//	dry-run: true
func applyJob(cmd *cobra.Command, path string) error {
	if path == "" {
		return nil
	}
	root, err := ParseJob(path)
	if formats := formatsOf(cmd); formats != nil && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(path, `./\`) {
		return Usagef("-f %s: no such file, and no output format: want %s%s", path, suggest.Or(formats),
			suggest.DidYouMean(path, formats))
	}
	if err != nil || root == nil {
		return err
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if at := lines[key.Value]; at != 0 {
			return Usagef("%s: line %d: %s is already set in line %d: write several values as a list", path, key.Line, key.Value,
				at)
		}
		lines[key.Value] = key.Line
		if argument(cmd, key.Value) {
			if value.Kind != yaml.ScalarNode || value.Value == "" {
				return Usagef("%s: line %d: %s: want a location", path, key.Line, key.Value)
			}
			continue
		}
		if err := ApplyFlag(cmd, key.Value, value); err != nil {
			return Usagef("%s: line %d: %w", path, key.Line, err)
		}
	}
	return nil
}

// argument reports whether name is the job file's name of an argument of the command.
func argument(cmd *cobra.Command, name string) bool {
	i := slices.Index(jobArguments, name)
	return i >= 0 && i < len(ArgNames(cmd))
}

// ParseJob parses a job file as a map. An empty file gives nil.
func ParseJob(path string) (*yaml.Node, error) {
	data, err := readJob(path)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	docs := yaml.NewDecoder(bytes.NewReader(data))
	if err := docs.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil // an empty file
		}
		return nil, Usagef("%s: %w", path, err)
	}
	if err := docs.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, Usagef("%s: only one YAML document is allowed", path)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, Usagef("%s: want a map of flags and their values", path)
	}
	return root, nil
}

// maxJob bounds the size of a job file.
const maxJob = 1 << 20

// readJob reads a job file. It stands for part of the command line, so a missing file is a usage error, like an error
// inside it.
func readJob(path string) ([]byte, error) {
	if err := NotStandard("file", path); err != nil {
		return nil, err
	}
	f, err := disk.Open(path)
	if err != nil {
		return nil, Usagef("--file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJob+1))
	if err != nil {
		return nil, Usagef("--file: %w", err)
	}
	if len(data) > maxJob {
		return nil, Usagef("--file %s: more than %s: not a file of flags", path, SizeFlag(maxJob))
	}
	return data, nil
}

// flagText returns the text to set a flag to. YAML has more words for true and false than a command line.
func flagText(flag *pflag.Flag, item *yaml.Node) string {
	var yes bool
	if flag.Value.Type() == "bool" && item.Decode(&yes) == nil {
		return strconv.FormatBool(yes)
	}
	return item.Value
}

// ApplyFlag sets one flag, once per item of a list.
func ApplyFlag(cmd *cobra.Command, name string, value *yaml.Node) error {
	flag := cmd.Flags().Lookup(name)
	if flag == nil || name == "file" || name == "help" {
		return fmt.Errorf("%s has no flag %q%s", cmd.Name(), name, suggest.DidYouMean(name, flagNames(cmd)))
	}
	if flag.Changed {
		return nil
	}
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		items = value.Content
	}
	if len(items) == 0 {
		return fmt.Errorf("%s: the list is empty; remove the key or give a value", name)
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return fmt.Errorf("%s: want a value or a list of values", name)
		}
		if err := cmd.Flags().Set(name, flagText(flag, item)); err != nil {
			return plainFlag(err)
		}
	}
	return nil
}

// At returns a node below n, nil if there is none: entries of maps by key, items of lists by number.
func At(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil {
			break
		}
		var next *yaml.Node
		for i, c := range n.Content {
			if n.Kind == yaml.SequenceNode && fmt.Sprint(i) == key ||
				n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == key {
				next = c
			}
		}
		n = next
	}
	return n
}
