package command

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

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

func (f *lossesFlag) Suggest(soFar string) ([]string, bool) {
	var out []string
	for _, l := range f.known() {
		out = append(out, l.Kind+"\t"+l.Text)
	}
	return cli.SuggestNext(out, soFar), true
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
		return errors.New("want error, rename or keep=TYPES, such as keep=zset,hash" +
			suggest.DidYouMean(s, []string{"error", "rename", conflictKeep}))
	}
	f.sameNames, f.text = c, s
	return nil
}

// String returns the text that was given.
func (f *conflictFlag) String() string { return f.text }

// Type lists the values for help texts.
func (f *conflictFlag) Type() string { return "error|rename|keep=types" }

func (f *conflictFlag) Suggest(soFar string) ([]string, bool) {
	if order, keep := strings.CutPrefix(soFar, conflictKeep); keep {
		var out []string
		for _, s := range cli.SuggestNext(typeNames(), order) {
			out = append(out, conflictKeep+s)
		}
		return out, true
	}
	return []string{"error", "rename", conflictKeep}, strings.HasPrefix(conflictKeep, soFar) && soFar != ""
}

// losses lists the kinds of losses that the targets in this build report, by name.
func (a *App) losses() []record.LossInfo {
	infos := record.LossInfos()
	for _, f := range dialects(a.Formats) {
		infos = append(infos, f.Limits().Losses...)
	}
	byKind := func(x, y record.LossInfo) int { return cmp.Compare(x.Kind, y.Kind) }
	slices.SortStableFunc(infos, byKind)
	return slices.CompactFunc(infos, func(x, y record.LossInfo) bool { return x.Kind == y.Kind })
}
