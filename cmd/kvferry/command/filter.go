package command

import (
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// SelectFlags are the flags that select records.
type SelectFlags struct {
	places      PlaceFlags
	match       []string
	exclude     []string
	regex       string
	keyFile     string
	keyRange    rangeFlag
	sample      int64
	expired     string
	ttlFrom     momentFlag
	ttlTo       momentFlag
	noExpiry    bool
	minBytes    cli.SizeFlag
	maxBytes    cli.SizeFlag
	minElements int64
	stdin       func() io.Reader    // for keyFile -
	keys        map[string]struct{} // from keyFile; kept, as a pipe can be read only once
}

// PlaceFlags are the selection flags that limit where to look for a key.
type PlaceFlags struct {
	types typesFlag
	dbs   []string
}

// Register adds the flags to a command.
func (f *PlaceFlags) Register(fs *pflag.FlagSet) {
	fs.Var(&f.types, "type", "only these types, separated by commas or repeated: "+strings.Join(typeNames(), ","))
	fs.StringSliceVar(&f.dbs, "db", nil, "only these databases, by `name`, separated by commas or repeated")
}

// pass skips stores without selected records (see format.OpenOptions), so that a damaged store does not stop a
// command that does not need it. With mapped, --db names databases of the other dataset, so names do not exclude
// stores.
func (f *PlaceFlags) pass(mapped bool) func(db string, t record.TypeSet, dir string) bool {
	types := record.TypeSet(f.types)
	return func(db string, t record.TypeSet, _ string) bool {
		return types != 0 && types&t == 0 || !mapped && len(f.dbs) > 0 && !slices.Contains(f.dbs, db)
	}
}

// Register adds the flags to a command.
func (f *SelectFlags) Register(cmd *cobra.Command) {
	f.stdin = cmd.InOrStdin
	fs := cmd.Flags()
	f.places.Register(fs)
	fs.StringArrayVar(&f.match, "match", nil, "only keys that match a glob `pattern`, as in the Redis command KEYS; repeatable")
	fs.StringArrayVar(&f.exclude, "exclude", nil, "leave out keys that match a glob `pattern`; repeatable")
	fs.StringVar(&f.regex, "regex", "", "only keys that match a regular `expression` (RE2)")
	fs.StringVar(&f.keyFile, "key-file", "", "only the keys in a `file` (-: standard input), one per line: text, hex:… or base64:…")
	fs.Var(&f.keyRange, "range", "only keys in a `range`, FROM..TO: FROM or more, and less than TO; either may be empty, hex:… or base64:…")
	fs.Var(cli.Number(&f.sample, 1, 0), "sample", "only one key in `n`, chosen by its hash: the same keys in every dataset; 1 for all")
	cli.Choose(fs, &f.expired, "expired", cli.Plain("drop", "keep"), "what to do with expired keys")
	fs.Var(&f.ttlFrom, "ttl-from", "only keys that expire at this `time` or later: RFC 3339, a date, Unix seconds, or from now (90m, 7d)")
	fs.Var(&f.ttlTo, "ttl-to", "only keys that expire before this `time`")
	fs.BoolVar(&f.noExpiry, "no-expiry", false, "only keys that never expire")
	fs.Var(&f.minBytes, "min-bytes", "only records whose key, fields, members and values have at least this size (512, 64KiB, 1MB); 0 for all")
	fs.Var(&f.maxBytes, "max-bytes", "only records of at most this size; 0 for no limit")
	fs.Var(cli.Number(&f.minElements, 0, 0), "min-elements", "only records with at least `n` elements; 0 for all")
}

// Selection returns the selection for a command with this memory limit.
func (f *SelectFlags) Selection(memory int64) (*filter.Selection, error) {
	out := &filter.Selection{MinBytes: int64(f.minBytes), MaxBytes: int64(f.maxBytes), MinElements: f.minElements,
		NoExpiry: f.noExpiry, ExpireFrom: f.ttlFrom.moment, ExpireTo: f.ttlTo.moment}
	out.Filter = filter.Filter{Types: record.TypeSet(f.places.types), DBs: f.places.dbs, Match: f.match, Exclude: f.exclude,
		Range: f.keyRange.span, Sample: uint64(f.sample)}
	out.KeepExpired = f.expired == "keep"
	var err error
	if f.regex != "" {
		if out.Regex, err = regexp.Compile(f.regex); err != nil {
			return nil, cli.Usagef("--regex: %w", err)
		}
	}
	if f.keyFile != "" && f.keys == nil {
		if f.keys, err = readKeys(f.keyFile, f.stdin, memory); err != nil {
			return nil, err
		}
	}
	out.Keys = f.keys
	return out, nil
}

// readKeys reads the --key-file, which may use a quarter of the memory.
func readKeys(path string, stdin func() io.Reader, memory int64) (map[string]struct{}, error) {
	f, err := cli.OpenInput(path, stdin)
	if err != nil {
		return nil, cli.Usagef("--key-file: %w", err)
	}
	defer f.Close()
	keys, err := filter.ReadKeys(f, memory/4)
	switch {
	case errors.Is(err, filter.ErrKeyMemory):
		return nil, cli.Usagef("--key-file %s: %w, %s, a quarter of --memory %s: give a larger --memory, or the keys in parts",
			path, err, cli.SizeFlag(memory/4), cli.SizeFlag(memory))
	case err != nil:
		return nil, cli.Usagef("--key-file %s: %w", path, err)
	}
	return keys, nil
}

// typesFlag is a set of types, joined by commas or repeated.
type typesFlag record.TypeSet

// Set adds types.
func (f *typesFlag) Set(s string) error {
	for _, name := range strings.Split(s, ",") {
		t, err := parseType(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		*f |= typesFlag(record.Of(t))
	}
	return nil
}

// Type names the flag's values in help texts.
func (f *typesFlag) Type() string { return "types" }

func (f *typesFlag) Suggest(soFar string) ([]string, bool) {
	return cli.SuggestNext(typeNames(), soFar), true
}

// String writes the types joined by commas.
func (f *typesFlag) String() string { return record.TypeSet(*f).String() }

// momentFlag is a time, or a duration from the command's own time. The zero value means not given.
type momentFlag struct{ moment *filter.Moment }

// Set parses a time or a duration.
func (f *momentFlag) Set(s string) error {
	if d, ok := parseDuration(s); ok {
		f.moment = &filter.Moment{Ahead: d}
		return nil
	}
	var t cli.TimeFlag
	if err := t.Set(s); err != nil || t.IsZero() {
		return errors.New("want a time (RFC 3339 or Unix seconds), a date (its start in UTC), or how far ahead (90m, 12h, 7d)")
	}
	f.moment = &filter.Moment{At: t.Time}
	return nil
}

// Type names the flag's values in help texts.
func (f *momentFlag) Type() string { return "time" }

// String formats the moment as a user would give it.
func (f *momentFlag) String() string {
	switch {
	case f.moment == nil:
		return ""
	case f.moment.At.IsZero():
		return f.moment.Ahead.String()
	}
	return f.moment.At.Format(time.RFC3339Nano)
}

// parseDuration parses a Go duration, or a number of days such as 7d.
func parseDuration(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		ns := n * float64(24*time.Hour)
		return time.Duration(ns), err == nil && math.Abs(ns) < math.MaxInt64
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// rangeFlag is a range of keys, FROM..TO.
type rangeFlag struct{ span *format.Span }

// Set parses a range.
func (f *rangeFlag) Set(s string) (err error) {
	f.span, err = filter.ParseRange(s)
	return err
}

// Type names the flag's values in help texts.
func (f *rangeFlag) Type() string { return "range" }

// String formats the range as a user would give it.
func (f *rangeFlag) String() string {
	if f.span == nil {
		return ""
	}
	return filter.RangeText(f.span)
}

// parseType parses the name of a type.
func parseType(name string) (record.Type, error) {
	t, err := record.ParseType(name)
	if err != nil {
		return 0, errors.New(suggest.Unknown("type", name, typeNames()))
	}
	return t, nil
}

// typeNames lists the types that typesFlag accepts.
func typeNames() []string { return strings.Split(record.AllTypes.String(), ",") }
