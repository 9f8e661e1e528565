package command

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// suggester is a flag value with known candidates, for shell completion.
type suggester interface {
	// suggest returns the candidates that can replace soFar, each optionally followed by a tab and a description.
	// open is true if more values can follow after a comma.
	suggest(soFar string) (values []string, open bool)
}

// option is one value of a flag and its meaning.
type option[T any] struct {
	name  string
	means T
}

// plain makes options whose meaning is their name.
func plain(names ...string) []option[string] {
	var out []option[string]
	for _, name := range names {
		out = append(out, option[string]{name, name})
	}
	return out
}

// choiceFlag accepts one of a fixed list of values. Help, parser and completion share the list.
type choiceFlag[T any] struct {
	to      *T
	chosen  string
	options []option[T]
}

// choose adds a flag with a fixed list of values. The first is the default.
func choose[T any](fs *pflag.FlagSet, to *T, name string, options []option[T], usage string) {
	*to = options[0].means
	fs.Var(&choiceFlag[T]{to: to, chosen: options[0].name, options: options}, name, usage)
}

func (f *choiceFlag[T]) names() []string {
	var out []string
	for _, o := range f.options {
		out = append(out, o.name)
	}
	return out
}

// Set accepts one of the values.
func (f *choiceFlag[T]) Set(s string) error {
	i := slices.Index(f.names(), s)
	if i < 0 {
		return errors.New("want " + suggest.Or(f.names()) + suggest.DidYouMean(s, f.names()))
	}
	*f.to, f.chosen = f.options[i].means, s
	return nil
}

// String returns the chosen value.
func (f *choiceFlag[T]) String() string { return f.chosen }

// Type lists the values for help texts.
func (f *choiceFlag[T]) Type() string { return strings.Join(f.names(), "|") }

func (f *choiceFlag[T]) suggest(string) ([]string, bool) { return f.names(), false }

// suggestNext completes the last value of a comma-separated list and leaves out values already given. A description
// may follow each value after a tab.
func suggestNext(values []string, soFar string) []string {
	head := soFar[:strings.LastIndex(soFar, ",")+1]
	given := strings.Split(head, ",")
	var out []string
	for _, v := range values {
		if name, _, _ := strings.Cut(v, "\t"); !slices.Contains(given, name) {
			out = append(out, head+v)
		}
	}
	return out
}

// lossesFlag accepts kinds of losses, comma-separated or repeated.
type lossesFlag struct {
	to    *[]string
	known func() []record.LossInfo
}

// Set adds kinds.
func (f *lossesFlag) Set(s string) error {
	if s == "" {
		return nil // a script may pass an empty list
	}
	for _, kind := range strings.Split(s, ",") {
		kind = strings.TrimSpace(kind)
		known := f.known()
		if !slices.ContainsFunc(known, func(l record.LossInfo) bool { return l.Kind == kind }) {
			var kinds []string
			for _, l := range known {
				kinds = append(kinds, l.Kind)
			}
			return errors.New(suggest.Unknown("kind of loss", kind, kinds))
		}
		*f.to = append(*f.to, kind)
	}
	return nil
}

// String returns the kinds joined by commas.
func (f *lossesFlag) String() string {
	if f.to == nil {
		return ""
	}
	return strings.Join(*f.to, ",")
}

// Type names the flag's values in help texts.
func (f *lossesFlag) Type() string { return "kinds" }

func (f *lossesFlag) suggest(soFar string) ([]string, bool) {
	var out []string
	for _, l := range f.known() {
		out = append(out, l.Kind+"\t"+l.Text)
	}
	return suggestNext(out, soFar), true
}

// sameNames decides how a target with one type per key handles a key that exists under several types.
type sameNames struct {
	rename bool
	prefer []record.Type // nil: an error, unless rename; empty: use the order of dump
}

// conflictFlag parses --on-conflict: error, rename, or keep= and types.
type conflictFlag struct {
	sameNames
	text string
}

const conflictKeep = "keep="

// Set accepts error, rename or keep=TYPES. keep= alone keeps the first type in the order of dump.
func (f *conflictFlag) Set(s string) error {
	var c sameNames
	order, keep := strings.CutPrefix(s, conflictKeep)
	switch {
	case keep:
		c.prefer = []record.Type{}
		for _, name := range strings.FieldsFunc(order, func(r rune) bool { return r == ',' }) {
			t, err := parseType(name)
			if err != nil {
				return err
			}
			c.prefer = append(c.prefer, t)
		}
	case s == "rename":
		c.rename = true
	case s != "error":
		return errors.New("want error, rename or keep=TYPES, such as keep=zset,hash" + suggest.DidYouMean(s, []string{"error", "rename", conflictKeep}))
	}
	f.sameNames, f.text = c, s
	return nil
}

// String returns the text that was given.
func (f *conflictFlag) String() string { return f.text }

// Type lists the values for help texts.
func (f *conflictFlag) Type() string { return "error|rename|keep=types" }

func (f *conflictFlag) suggest(soFar string) ([]string, bool) {
	if order, keep := strings.CutPrefix(soFar, conflictKeep); keep {
		var out []string
		for _, s := range suggestNext(typeNames(), order) {
			out = append(out, conflictKeep+s)
		}
		return out, true
	}
	return []string{"error", "rename", conflictKeep}, strings.HasPrefix(conflictKeep, soFar) && soFar != ""
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

// numberFlag is a whole number within bounds.
type numberFlag[T int | int32 | int64] struct {
	to          *T
	least, most T // most 0: no bound
}

// number makes the value of a flag for numbers from least to most; a most of 0 sets no upper bound.
func number[T int | int32 | int64](to *T, least, most T) *numberFlag[T] {
	return &numberFlag[T]{to, least, most}
}

// Set parses a number.
func (f *numberFlag[T]) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n == int64(T(n)) && T(n) >= f.least && (f.most == 0 || T(n) <= f.most) {
		*f.to = T(n)
		return nil
	}
	if f.most == 0 {
		return fmt.Errorf("want a whole number, %d or more", f.least)
	}
	return fmt.Errorf("want a whole number from %d to %d", f.least, f.most)
}

// String returns the number.
func (f *numberFlag[T]) String() string {
	if f.to == nil {
		return "0"
	}
	return strconv.FormatInt(int64(*f.to), 10)
}

// Type names the flag's values in help texts.
func (f *numberFlag[T]) Type() string { return "n" }

const maxWorkers = 256

// registerWorkers adds --workers, which has the same meaning in every command.
func registerWorkers(fs *pflag.FlagSet, to *int) {
	*to = min(runtime.GOMAXPROCS(0), maxWorkers)
	fs.Var(number(to, 1, maxWorkers), "workers", fmt.Sprintf("number of parts of the dataset to process in parallel, 1 to %d; the result is the same for any number", maxWorkers))
	fs.Lookup("workers").DefValue = "one per CPU"
}

// minMemory is the smallest limit that --memory accepts.
const minMemory = 32 << 20

// memoryFlag is a limit of resident memory, in bytes.
type memoryFlag struct{ sizeFlag }

// Register adds --memory with its default for this command.
func (f *memoryFlag) Register(fs *pflag.FlagSet, memory sizeFlag) {
	f.sizeFlag = memory
	least := sizeFlag(minMemory)
	fs.Var(f, "memory", "limit of resident memory, "+least.String()+" or more")
}

// Set parses a size.
func (f *memoryFlag) Set(s string) error {
	var size sizeFlag
	if err := size.Set(s); err != nil {
		return err
	}
	if size < minMemory {
		least := sizeFlag(minMemory)
		return fmt.Errorf("want %s or more, in one word with its unit, such as 512MiB", least.String())
	}
	f.sizeFlag = size
	return nil
}

// delimiterFlag is any text; completion offers the usual ones.
type delimiterFlag string

// Set accepts any text.
func (f *delimiterFlag) Set(s string) error {
	*f = delimiterFlag(s)
	return nil
}

// String returns the text.
func (f *delimiterFlag) String() string { return string(*f) }

// Type names the flag's values in help texts.
func (f *delimiterFlag) Type() string { return "text" }

func (f *delimiterFlag) suggest(string) ([]string, bool) {
	return []string{":", "/", ".", "-", "_", "|", "#"}, false
}
