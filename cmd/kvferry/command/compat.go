package command

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"kvferry/catalog"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// anywhere lists the losses that depend on the data and not on the formats: any conversion can have them.
var anywhere = []string{record.LossScoreNaN, record.LossHyperLogLog, record.LossNewer, record.LossDamaged}

const compatHead = `# Compatibility

Written by ` + "`kvferry formats --format markdown`" + ` from the limits in the code; ` + "`make docs`" + ` updates it.

Every readable format converts into every writable format, including itself. A loss is data that the
target cannot hold. kvferry lists losses before it publishes the target (gives it its final name),
and refuses with exit code 4 unless ` + "`--allow-loss`" + ` names them. ` + "`--dry-run`" + ` only lists them.
`

// writeCompat writes docs/compatibility.md: the limits of each format and the possible losses of each pair.
func writeCompat(w io.Writer, formats []format.Format) error {
	var b bytes.Buffer
	b.WriteString(compatHead)
	all := dialects(formats)
	holdTable(&b, all)
	serverTable(&b, formats)
	storeTable(&b, formats)
	pairTable(&b, formats, all)
	lossTable(&b, all)
	_, err := w.Write(b.Bytes())
	return err
}

// row writes a row of a table.
func row(b *bytes.Buffer, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// head writes a heading and the header rows of a table.
func head(b *bytes.Buffer, title, text string, cells ...string) {
	b.WriteString("\n## " + title + "\n\n")
	if text != "" {
		b.WriteString(text + "\n\n")
	}
	row(b, cells...)
	row(b, slices.Repeat([]string{"---"}, len(cells))...)
}

// dialects adds to each format the servers whose types or losses differ from the format as a whole.
func dialects(formats []format.Format) (out []format.Format) {
	for _, f := range formats {
		out = append(out, f)
		for _, s := range catalog.Servers(f) {
			if d := f.(format.Served).For(s.Name); differs(d, f, formats) {
				out = append(out, d)
			}
		}
	}
	return out
}

// differs reports whether two dialects differ in their types or in the losses of conversions from or into them.
func differs(a, b format.Format, formats []format.Format) bool {
	x, y := a.Limits(), b.Limits()
	return x.Types != y.Types || slices.ContainsFunc(formats, func(f format.Format) bool {
		l := f.Limits()
		return !slices.Equal(possibleKinds(&l, &x), possibleKinds(&l, &y)) ||
			!slices.Equal(possibleKinds(&x, &l), possibleKinds(&y, &l))
	})
}

// possibleKinds lists the kinds of losses from one format to another, except those in anywhere.
func possibleKinds(from, to *format.Limits) (kinds []string) {
	for _, info := range format.PossibleLosses(from, to, dataset.Beyond(from, to)) {
		if !slices.Contains(anywhere, info.Kind) {
			kinds = append(kinds, info.Kind)
		}
	}
	return kinds
}

func names(formats []format.Format) (out []string) {
	for _, f := range formats {
		out = append(out, format.LocationName(f))
	}
	return out
}

// holdTable has a column for each format and a row for each property.
func holdTable(b *bytes.Buffer, formats []format.Format) {
	head(b, "What each format can hold", "", append([]string{""}, names(formats)...)...)
	for _, p := range slices.Concat([]property{{"written by", func(l *format.Limits) string { return l.Detail }}}, properties,
		[]property{
			{"kvferry", useText},
			{"databases", func(l *format.Limits) string { return l.Databases }},
			{"also", func(l *format.Limits) string { return strings.Join(l.OtherDetails, "; ") }},
		}) {
		cells := []string{p.name}
		for _, f := range formats {
			l := f.Limits()
			cells = append(cells, p.text(&l))
		}
		row(b, cells...)
	}
}

// serverTable lists the server names that locations accept.
func serverTable(b *bytes.Buffer, formats []format.Format) {
	head(b, "Servers", "A location names a format or a server. For a target, the name of a server determines the\n"+
		"layout; for a source, kvferry only checks that the data has the format of that server.", "location", "format", "server")
	for _, f := range formats {
		for _, s := range catalog.Servers(f) {
			row(b, "`"+s.Name+":`", f.Name(), s.Detail)
		}
	}
}

// storeTable shows the formats read from and written to each store.
func storeTable(b *bytes.Buffer, formats []format.Format) {
	var stores []string
	for _, f := range formats {
		for _, s := range f.Limits().Stores {
			if !slices.Contains(stores, s.Store) {
				stores = append(stores, s.Store)
			}
		}
	}
	head(b, "Stores", "", append([]string{""}, stores...)...)
	for _, f := range formats {
		cells := []string{f.Name()}
		for _, name := range stores {
			text := "–"
			for _, s := range f.Limits().Stores {
				if s.Store == name {
					text = supportText(s)
				}
			}
			cells = append(cells, text)
		}
		row(b, cells...)
	}
}

// pairTable lists the possible losses of each pair of formats.
func pairTable(b *bytes.Buffer, formats, all []format.Format) {
	targets := slices.DeleteFunc(slices.Clone(all), func(f format.Format) bool { return f.Limits().NoTarget != "" })
	head(b, "Losses by pair of formats", "The possible losses of a conversion from the format of the row to the format of the column.\n`"+
		strings.Join(anywhere, "`, `")+"` depend only on the data and may occur for any pair.\n"+
		"Each database stays a database (a directory in nemo and blackwidow, a namespace in Ardb and\n"+
		"Kvrocks); `--db NAME` selects some of them. Columns rdb and aof are for RDB 9: an older\n"+
		"`--rdb-version` loses more, a newer version less. Column redis is for the oldest servers;\n"+
		"newer servers lose less.", append([]string{"from"}, names(targets)...)...)
	for _, from := range all {
		if !slices.ContainsFunc(formats, func(f format.Format) bool {
			return f.Name() == from.Name() && (from == f || from.Limits().Types != f.Limits().Types)
		}) {
			continue
		}
		cells := []string{format.LocationName(from)}
		for _, to := range targets {
			f, t := from.Limits(), to.Limits()
			cell := "nothing"
			if kinds := possibleKinds(&f, &t); kinds != nil {
				cell = "`" + strings.Join(kinds, "`, `") + "`"
			}
			cells = append(cells, cell)
		}
		row(b, cells...)
	}
}

// lossTable describes every kind of loss.
func lossTable(b *bytes.Buffer, formats []format.Format) {
	head(b, "Losses", "", "kind", "meaning", "permission")
	infos := record.LossInfos()
	for _, f := range formats {
		infos = append(infos, f.Limits().Losses...)
	}
	seen := map[string]bool{}
	for _, info := range infos {
		if seen[info.Kind] {
			continue
		}
		seen[info.Kind] = true
		permission := "`--allow-loss " + info.Kind + "`"
		if info.Note {
			permission = "not needed: a note"
		}
		row(b, "`"+info.Kind+"`", info.Text, permission)
	}
}

// property is a property of a format, as text.
type property struct {
	name string
	text func(l *format.Limits) string
}

// properties are those that a format has on any store.
var properties = []property{
	{"types", func(l *format.Limits) string { return strings.ReplaceAll(l.Types.String(), ",", ", ") }},
	{"keys", keysText},
	{"elements", func(l *format.Limits) string { return limitText(l.MaxElements, "%s in a collection") }},
	{"scores", scoresText},
	{"expiry", expiryText},
	{"one name", nameText},
	{"also held", heldText},
}

func nameText(l *format.Limits) string {
	if l.SameName {
		return "may exist under several types"
	}
	return "has one type"
}

func limitText(n int64, text string) string {
	if n == 0 {
		return "no limit"
	}
	return "at most " + fmt.Sprintf(text, record.Number(n))
}

func keysText(l *format.Limits) string {
	text := limitText(int64(l.MaxKey), "%s bytes for collections")
	if !l.EmptyKey {
		text += ", not empty for collections"
	}
	return text
}

func scoresText(l *format.Limits) string {
	switch {
	case l.ScoreDetail != "":
		return l.ScoreDetail
	case l.MaxScore == 0 || math.IsInf(l.MaxScore, 0):
		return "any number"
	}
	return fmt.Sprintf("-%g to %g", l.MaxScore, l.MaxScore)
}

func expiryText(l *format.Limits) string {
	text := "in milliseconds"
	if l.Seconds {
		text = "in seconds"
	}
	if l.MaxExpireMS != 0 {
		text += ", until " + time.UnixMilli(l.MaxExpireMS).UTC().Format(time.RFC3339)
	}
	return text
}

func supportText(s format.StoreSupport) string {
	text := "neither read nor written"
	switch {
	case s.Read && s.Write:
		text = "read and written"
	case s.Read:
		text = "read only"
	case s.Write:
		text = "written only"
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// useText describes whether this build reads and writes a format.
func useText(l *format.Limits) string {
	if l.NoTarget != "" {
		return "read only: " + l.NoTarget
	}
	return "read and written"
}

// heldText lists features of newer servers that only some formats hold.
func heldText(l *format.Limits) string {
	var parts []string
	if l.FieldExpiry {
		parts = append(parts, "expiries of fields")
	}
	if l.StreamGroups {
		parts = append(parts, "consumer groups of streams")
	}
	if len(parts) == 0 {
		return "no expiries of fields, no consumer groups"
	}
	return strings.Join(parts, ", ")
}
