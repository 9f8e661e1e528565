package command

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/format"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// formats prints the limits of each format and the support of this build.
func (a *App) formats() *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:     "formats",
		Short:   "Show what each format can hold, and which stores it can be on",
		Long:    "Show what each format can hold (types, keys, scores, expiry, databases) and which stores this build reads and writes.",
		Example: "  kvferry formats\n  kvferry formats --format markdown > compatibility.md",
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch form {
			case "markdown":
				return writeCompat(cmd.OutOrStdout(), a.Formats)
			case "json":
				return formatsJSON(cmd.OutOrStdout(), a.Formats)
			}
			for i, f := range a.Formats {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := printFormat(cmd.OutOrStdout(), f); err != nil {
					return err
				}
			}
			return nil
		},
	}
	choose(cmd.Flags(), &form, "format", plain("text", "json", "markdown"), "output format, also as -f NAME; markdown also lists what each pair of formats may lose")
	return cmd
}

// formatsJSON prints the limits of formats as JSON.
func formatsJSON(w io.Writer, formats []format.Format) error {
	type server struct {
		Name   string `json:"name"`
		Detail string `json:"detail"`
	}
	type support struct {
		Store string `json:"store"`
		Read  bool   `json:"read"`
		Write bool   `json:"write"`
	}
	type entry struct {
		Name        string    `json:"name"`
		Detail      string    `json:"detail"`
		Servers     []server  `json:"servers"`
		Types       []string  `json:"types"`
		Seconds     bool      `json:"expiry_in_seconds"`
		MaxExpireMS int64     `json:"max_expire_at_ms"` // 0: no limit
		MaxKey      int       `json:"max_key_bytes"`    // 0: no limit
		EmptyKey    bool      `json:"empty_key"`
		SameName    bool      `json:"same_name"`
		Stores      []support `json:"stores"`
	}
	out := []entry{}
	for _, f := range formats {
		l := f.Limits()
		e := entry{Name: f.Name(), Detail: l.Detail, Servers: []server{}, Stores: []support{}, Seconds: l.Seconds, MaxExpireMS: l.MaxExpireMS,
			MaxKey: l.MaxKey, EmptyKey: l.EmptyKey, SameName: l.SameName}
		for _, s := range catalog.Servers(f) {
			e.Servers = append(e.Servers, server{s.Name, s.Detail})
		}
		for _, t := range l.Types.Types() {
			e.Types = append(e.Types, t.String())
		}
		for _, s := range l.Stores {
			e.Stores = append(e.Stores, support{s.Store, s.Read, s.Write})
		}
		out = append(out, e)
	}
	return printJSON(w, out)
}

func printFormat(w io.Writer, f format.Format) error {
	l := f.Limits()
	fmt.Fprintf(w, "%s: %s\n", f.Name(), l.Detail)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	room := helpWidth(w) - formatIndent
	row := func(name, text string) {
		for _, line := range page.Wrap(text, room) {
			fmt.Fprintf(t, "  %s\t%s\n", name, line)
			name = ""
		}
	}
	for _, server := range catalog.Servers(f) {
		row(server.Name+":", server.Detail)
	}
	row("types", strings.ReplaceAll(l.Types.String(), ",", ", "))
	row("keys", keysText(&l))
	row("elements", limitText(l.MaxElements, "%s in a collection"))
	row("scores", scoresText(&l))
	row("expiry", expiryText(&l))
	row("one name", nameText(&l))
	row("also held", heldText(&l))
	row("databases", l.Databases)
	if len(l.Stores) == 0 {
		row("here", useText(&l))
	}
	for _, s := range l.Stores {
		row("on "+s.Store, supportText(s))
	}
	for _, d := range l.OtherDetails {
		row("also", d)
	}
	return t.Flush()
}

// formatIndent is the room for the names of a format's properties.
const formatIndent = 16

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
