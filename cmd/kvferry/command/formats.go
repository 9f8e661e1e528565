package command

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/text/page"
)

// formats prints the limits of each format and the support of this build.
func (a *App) formats() *cobra.Command {
	var print func(io.Writer, []format.Format) error
	cmd := &cobra.Command{
		Use:     "formats",
		Short:   "Show what each format can hold, and which stores it can be on",
		Long:    "Show what each format can hold (types, keys, scores, expiry, databases) and which stores this build reads and writes.",
		Example: "  kvferry formats\n  kvferry formats --format markdown > compatibility.md",
		RunE:    func(cmd *cobra.Command, _ []string) error { return print(cmd.OutOrStdout(), a.Formats) },
	}
	cli.Choose(cmd.Flags(), &print, "format",
		[]cli.Option[func(io.Writer, []format.Format) error]{{Name: "text", Means: formatsText},
			{Name: "json", Means: formatsJSON}, {Name: "markdown", Means: writeCompat}}, "output format, also as -f NAME; markdown also lists what each pair of formats may lose")
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
		e := entry{Name: f.Name(), Detail: l.Detail, Servers: []server{}, Stores: []support{}, Seconds: l.Seconds,
			MaxExpireMS: l.MaxExpireMS, MaxKey: l.MaxKey, EmptyKey: l.EmptyKey, SameName: l.SameName}
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
	return cli.PrintJSON(w, out)
}

// formatsText prints the limits of formats as text.
func formatsText(w io.Writer, formats []format.Format) error {
	for i, f := range formats {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printFormat(w, f); err != nil {
			return err
		}
	}
	return nil
}

func printFormat(w io.Writer, f format.Format) error {
	l := f.Limits()
	fmt.Fprintf(w, "%s: %s\n", f.Name(), l.Detail)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	room := cli.HelpWidth(w) - formatIndent
	row := func(name, text string) {
		for _, line := range page.Wrap(text, room) {
			fmt.Fprintf(t, "  %s\t%s\n", name, line)
			name = ""
		}
	}
	for _, server := range catalog.Servers(f) {
		row(server.Name+":", server.Detail)
	}
	for _, p := range properties {
		row(p.name, p.text(&l))
	}
	row("databases", l.Databases)
	if len(l.Stores) == 0 {
		row("kvferry", useText(&l))
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
