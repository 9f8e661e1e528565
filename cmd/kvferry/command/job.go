package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"
)

// applyJob sets the flags that a YAML file names and the command line does not. Its keys are the
// names of the command's flags:
//
//	type: [hash, zset]
//	memory: 1GiB
//	dry-run: true
func applyJob(cmd *cobra.Command, path string) error {
	if path == "" {
		return nil
	}
	data, err := readJob(path)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // an empty file
		}
		return usagef("%s: %w", path, err)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return usagef("%s: want a map of flags and their values", path)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if err := applyFlag(cmd, key.Value, value); err != nil {
			return usagef("%s: line %d: %w", path, key.Line, err)
		}
	}
	return nil
}

// maxJob bounds a job file: it holds some flags.
const maxJob = 1 << 20

// readJob reads a job file, which stands for a part of the command line. One that is not there is wrong usage as
// what is wrong in it.
func readJob(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("--file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJob+1))
	if err != nil {
		return nil, usagef("--file: %w", err)
	}
	if len(data) > maxJob {
		most := sizeFlag(maxJob)
		return nil, usagef("--file %s: more than %s: this is no file of flags", path, &most)
	}
	return data, nil
}

// applyFlag sets one flag, once for each item of a list.
func applyFlag(cmd *cobra.Command, name string, value *yaml.Node) error {
	flag := cmd.Flags().Lookup(name)
	if flag == nil || name == "file" || name == "help" {
		return fmt.Errorf("%s has no flag %q", cmd.Name(), name)
	}
	if flag.Changed {
		return nil
	}
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		items = value.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s: want a value or a list of values", name)
		}
		if err := cmd.Flags().Set(name, item.Value); err != nil {
			return err
		}
	}
	return nil
}
