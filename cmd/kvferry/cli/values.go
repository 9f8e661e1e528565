package cli

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kvferry/internal/text/suggest"
)

// SizeFlag is a number of bytes: 512MiB, 64k, 1000000.
type SizeFlag int64

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1},
}

// Set parses a size: KiB, MiB, GiB and single letters are powers of 1024, KB, MB, GB of 1000.
func (f *SizeFlag) Set(s string) error {
	lower := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		n, ok := sizeIn(strings.TrimSpace(digits), u.bytes)
		if !ok {
			break
		}
		*f = SizeFlag(n)
		return nil
	}
	return errors.New("want a number of bytes such as 512MiB")
}

// sizeIn converts a number of units to whole bytes. It returns false if the number is invalid or out of range.
func sizeIn(digits string, unit float64) (int64, bool) {
	n, err := strconv.ParseFloat(digits, 64)
	ok := err == nil && n >= 0 && n*unit <= math.MaxInt64/2 // false for NaN
	return int64(n * unit), ok
}

// Type names the flag's values in help texts.
func (f *SizeFlag) Type() string { return "size" }

// String writes the size in the largest unit that divides it.
func (f SizeFlag) String() string {
	n := int64(f)
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n != 0 && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// TimeFlag is a time: RFC 3339, a date, or Unix seconds. The zero value means not given.
type TimeFlag struct{ time.Time }

// Set parses a time.
func (f *TimeFlag) Set(s string) error {
	if n, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(n) < 1e12 {
		f.Time = time.UnixMilli(int64(math.Round(n * 1000))).UTC()
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil || t.IsZero() {
		return errors.New("want a time such as 2023-11-14T22:13:20Z, a date (its start in UTC), or Unix seconds")
	}
	f.Time = t.UTC()
	return nil
}

// Type names the flag's values in help texts.
func (f *TimeFlag) Type() string { return "time" }

// String formats the time as RFC 3339.
func (f *TimeFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Format(time.RFC3339Nano)
}

// Option is one value of a flag and its meaning.
type Option[T any] struct {
	Name  string
	Means T
}

// Plain makes options whose meaning is their name.
func Plain(names ...string) []Option[string] {
	var out []Option[string]
	for _, name := range names {
		out = append(out, Option[string]{name, name})
	}
	return out
}

// choiceFlag accepts one of a fixed list of values. Help, parser and completion share the list.
type choiceFlag[T any] struct {
	to      *T
	chosen  string
	options []Option[T]
}

// Choose adds a flag with a fixed list of values. The first is the default.
func Choose[T any](fs *pflag.FlagSet, to *T, name string, options []Option[T], usage string) {
	*to = options[0].Means
	fs.Var(&choiceFlag[T]{to: to, chosen: options[0].Name, options: options}, name, usage)
}

func (f *choiceFlag[T]) names() []string {
	var out []string
	for _, o := range f.options {
		out = append(out, o.Name)
	}
	return out
}

// Set accepts one of the values.
func (f *choiceFlag[T]) Set(s string) error {
	i := slices.Index(f.names(), s)
	if i < 0 {
		return errors.New("want " + suggest.Or(f.names()) + suggest.DidYouMean(s, f.names()))
	}
	*f.to, f.chosen = f.options[i].Means, s
	return nil
}

// String returns the chosen value.
func (f *choiceFlag[T]) String() string { return f.chosen }

// Type lists the values for help texts.
func (f *choiceFlag[T]) Type() string { return strings.Join(f.names(), "|") }

func (f *choiceFlag[T]) Suggest(string) ([]string, bool) { return f.names(), false }

// numberFlag is a whole number within bounds.
type numberFlag[T int | int32 | int64] struct {
	to          *T
	least, most T // most 0: no bound
}

// Number makes the value of a flag for numbers from least to most; a most of 0 sets no upper bound.
func Number[T int | int32 | int64](to *T, least, most T) *numberFlag[T] {
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

// RegisterWorkers adds --workers, which has the same meaning in every command.
func RegisterWorkers(fs *pflag.FlagSet, to *int) {
	*to = min(runtime.GOMAXPROCS(0), maxWorkers)
	fs.Var(Number(to, 1, maxWorkers), "workers", fmt.Sprintf("number of parts of the dataset to process in parallel, 1 to %d; the result is the same for any number",
		maxWorkers))
	fs.Lookup("workers").DefValue = "one per CPU"
}

// minMemory is the smallest limit that --memory accepts.
const minMemory = 32 << 20

// MemoryFlag is a limit of resident memory, in bytes.
type MemoryFlag struct{ SizeFlag }

// Register adds --memory with its default for this command.
func (f *MemoryFlag) Register(fs *pflag.FlagSet, memory SizeFlag) {
	f.SizeFlag = memory
	fs.Var(f, "memory", "limit of resident memory, "+SizeFlag(minMemory).String()+" or more")
}

// Set parses a size.
func (f *MemoryFlag) Set(s string) error {
	var size SizeFlag
	if err := size.Set(s); err != nil {
		return err
	}
	if size < minMemory {
		return fmt.Errorf("want %s or more, in one word with its unit, such as 512MiB", SizeFlag(minMemory))
	}
	f.SizeFlag = size
	return nil
}
