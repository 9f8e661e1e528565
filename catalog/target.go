package catalog

import (
	"path/filepath"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
)

// Target parses the location of a target. The location must name the format and may name the store. For a server it
// consists of format and address.
func (c *Catalog) Target(given string) (convert.Output, error) {
	loc, err := c.parse(given)
	if err != nil {
		return convert.Output{}, err
	}
	given = object.Shown(given)
	if loc.Format == "" {
		return convert.Output{}, format.Usagef("target %s: name its format, such as blackwidow:%s", given, given)
	}
	f, err := c.Format(loc.Format)
	if err != nil {
		return convert.Output{}, err
	}
	if why := f.Limits().NoTarget; why != "" {
		return convert.Output{}, format.Usagef("%s: %s", escape.Text(loc.Path), why)
	}
	if loc.Path == standardInput && f.Limits().Place != format.OnServer {
		return convert.Output{}, format.Usagef("target %s: standard output cannot be a target: kvferry reads a target back and renames it into place; "+
			"name a path, and send the target when the conversion is complete (a file named - is %s:./-)", given, loc.Format)
	}
	if ext := filepath.Ext(loc.Path); f.Limits().Place == format.InFile && (ext == ".gz" || ext == ".zst") {
		return convert.Output{}, format.Usagef("target %s: kvferry writes %s files without compression: leave out %s, and compress the file after the conversion; "+
			"kvferry also reads compressed files", given, f.Name(), ext)
	}
	d, err := c.writer(f, &loc)
	if err != nil {
		return convert.Output{}, err
	}
	out := convert.Output{Format: f, Store: d.Name, Path: loc.Path, Create: d.Create, Open: d.Open}
	if object.IsAddress(loc.Path) {
		if out.Objects, err = object.NewTarget(loc.Path, f.Limits().Place != format.InFile, c.Uploads); err != nil {
			return convert.Output{}, format.Usagef("target %w", err)
		}
		out.Path = out.Objects.LocalName()
	}
	return out, nil
}

// writer returns the driver that writes a format.
func (c *Catalog) writer(f format.Format, loc *Location) (*Driver, error) {
	if f.Limits().Place != format.InDirectory {
		if loc.Store != "" {
			return nil, format.Usagef("%s+%s: %s has no stores", loc.Format, loc.Store, f.Name())
		}
		return NoStores, nil
	}
	name, err := writable(f, loc.Store)
	if err != nil {
		return nil, err
	}
	d, err := c.Driver(name)
	if err == nil && d.Create == nil {
		err = format.Usagef("this build does not write %s", d.Name)
	}
	return d, err
}

// writable returns the store to write a format to: the named store, or the format's first writable one.
func writable(f format.Format, name string) (string, error) {
	var names []string
	for _, s := range f.Limits().Stores {
		if name != "" && s.Store == name && !s.Write {
			return "", format.Usagef("%s+%s cannot be written: %s", format.LocationName(f), name, s.Why)
		}
		if s.Write && (name == "" || s.Store == name) {
			return s.Store, nil
		}
		names = append(names, s.Store)
	}
	return "", format.Usagef("%s: %s", format.LocationName(f), suggest.Unknown("store", name, names))
}
