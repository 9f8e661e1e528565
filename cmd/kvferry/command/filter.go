package command

import (
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"kvferry/internal/filter"
	"kvferry/record"
)

// FilterFlags are the flags that say which records a command is about.
type FilterFlags struct {
	types   typesFlag
	match   []string
	regex   string
	dbs     []string
	keyFile string
}

// Register adds the flags to a command.
func (f *FilterFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Var(&f.types, "type", "only these `types`: string,hash,list,set,zset,stream")
	fs.StringArrayVar(&f.match, "match", nil, "only keys that match a glob `pattern` as Redis' KEYS has it; repeated: any of them")
	fs.StringVar(&f.regex, "regex", "", "only keys in which a regular `expression` matches")
	fs.StringSliceVar(&f.dbs, "db", nil, "only these databases, by `name`")
	fs.StringVar(&f.keyFile, "key-file", "", "only the keys in a `file`, one a line: text, hex:… or base64:…")
}

// Filter returns the filter that the flags describe.
func (f *FilterFlags) Filter() (*filter.Filter, error) {
	out := &filter.Filter{Types: record.TypeSet(f.types), DBs: f.dbs, Match: f.match}
	if f.regex != "" {
		re, err := regexp.Compile(f.regex)
		if err != nil {
			return nil, usagef("--regex: %w", err)
		}
		out.Regex = re
	}
	if f.keyFile != "" {
		data, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--key-file: %w", err)
		}
		if out.Keys, err = filter.Keep(data); err != nil {
			return nil, usagef("--key-file %s: %w", f.keyFile, err)
		}
	}
	return out, nil
}
