package catalog

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
	"kvferry/redis/live"
)

// Location is the location of a dataset in text form: [format[+store]:]path, or the address of a server.
type Location struct {
	Format string // format or server name; "": detect it
	Store  string // "": detect it, or use the format's first store
	Path   string
}

// locationPrefix matches an optional prefix of a path.
var locationPrefix = regexp.MustCompile(`(?s)^([a-z][a-z0-9.]*)(?:\+([a-z][a-z0-9]*))?:(.*)$`)

// ParseLocation parses a location. Write ./path for a path with a colon.
func ParseLocation(s string) (Location, error) {
	if live.IsAddress(s) {
		return Location{Format: live.Name, Path: s}, nil
	}
	loc := Location{Path: s}
	if object.IsAddress(s) {
		return loc, nil
	}
	if m := locationPrefix.FindStringSubmatch(s); m != nil {
		loc = Location{Format: m[1], Store: m[2], Path: m[3]}
	}
	if loc.Path == "" {
		return Location{}, fmt.Errorf("location %q: no path", s)
	}
	return loc, nil
}

// Format returns the format with the given name. If the name is a server's, it returns the format in that server's
// dialect.
func (c *Catalog) Format(name string) (format.Format, error) {
	var names []string
	var servers []format.Server
	for _, f := range c.Formats {
		if f.Name() == name {
			return f, nil
		}
		names = append(names, f.Name())
		for _, s := range Servers(f) {
			if s.Name == name {
				return f.(format.Served).For(name), nil
			}
			names, servers = append(names, s.Name), append(servers, s)
		}
	}
	if s := serverOf(name, servers); s != nil {
		return nil, format.Usagef("unknown format or server %q: write %s:, which is %s", name, s.Name, s.Detail)
	}
	if meant := c.nameMeant(name); meant != "" {
		return nil, format.Usagef("unknown format or server %q: %s (if it is a path, write ./%s:…)", name, meant, name)
	}
	return nil, format.Usagef("%s (if it is a path, write ./%s:…)", suggest.Unknown("format or server", name, names), name)
}

// versionedName matches the name of a server with a version.
var versionedName = regexp.MustCompile(`^([a-z]+)([0-9]+(?:\.[0-9]+)*)$`)

// serverOf returns the server whose range contains a version, such as pika3 for pika3.4, or nil.
func serverOf(name string, servers []format.Server) *format.Server {
	m := versionedName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	for i, s := range servers {
		of := versionedName.FindStringSubmatch(s.Name)
		if of != nil && of[1] == m[1] && compareVersions(s.First, m[2]) <= 0 && compareVersions(m[2], s.Last) <= 0 {
			return &servers[i]
		}
	}
	return nil
}

// compareVersions compares the common components of two versions: 3.5 equals 3.5.4.
func compareVersions(x, y string) int {
	xs, ys := strings.Split(x, "."), strings.Split(y, ".")
	for i := range min(len(xs), len(ys)) {
		a, _ := strconv.Atoi(xs[i])
		b, _ := strconv.Atoi(ys[i])
		if a != b {
			return cmp.Compare(a, b)
		}
	}
	return 0
}

// Servers lists the server names of a format.
func Servers(f format.Format) []format.Server {
	if s, ok := f.(format.Served); ok {
		return s.Servers()
	}
	return nil
}

// Driver returns the driver with the given name.
func (c *Catalog) Driver(name string) (*Driver, error) {
	var names []string
	for i := range c.Drivers {
		if c.Drivers[i].Name == name {
			return &c.Drivers[i], nil
		}
		names = append(names, c.Drivers[i].Name)
	}
	return nil, format.Usagef("%s", suggest.Unknown("store", name, names))
}

// Like returns the flags of a conversion and the location of its target that keep all that the dataset has: the server's
// rows, the kind of store, and the shape. The target's path is the dataset's path with a suffix. written is the layout
// of the target without a flag, or LayoutAuto if unknown.
func (f *Found) Like(shape format.Shape, written format.Layout, suffix string) (flags []string, location string) {
	of := f.Format
	if served, ok := of.(format.Served); ok && served.Server() == "" && shape.Server != "" {
		of = served.For(shape.Server)
	}
	limits := of.Limits()
	location = format.LocationName(of)
	if own, err := writable(of, ""); err == nil && own != f.Driver.Name {
		if _, err := writable(of, f.Driver.Name); err == nil {
			location += "+" + f.Driver.Name
		}
	}
	if limits.Cluster && shape.Cluster {
		flags = append(flags, "--cluster")
	}
	if limits.Layouts && shape.Layout != format.LayoutAuto && shape.Layout != cmp.Or(limits.Layout, written) {
		flags = append(flags, "--layout", shape.Layout.String())
	}
	if limits.Instances > 0 && shape.Instances > 0 {
		flags = flagUnless(flags, "instances", shape.Instances, limits.Instances)
		flags = flagUnless(flags, "slots", shape.Slots, limits.Slots)
	}
	if shape.RDBVersion != "" {
		flags = append(flags, "--rdb-version", shape.RDBVersion)
	}
	return flags, location + ":" + f.pathWith(suffix)
}

// locationIn returns the location of a source in a format, for messages that advise to name it.
func locationIn(f format.Format, path string) string {
	return escape.Shell([]string{format.LocationName(f) + ":" + object.Shown(disk.Address(path))})
}

// flagUnless adds a flag unless its value is the default.
func flagUnless(flags []string, name string, value, usual int) []string {
	if value == usual {
		return flags
	}
	return append(flags, "--"+name, strconv.Itoa(value))
}

// OnDisk reports whether the dataset is on a disk of this machine.
func (f *Found) OnDisk() bool {
	return !disk.IsMounted(f.Location.Path) && !object.IsAddress(disk.Address(f.Location.Path))
}

// pathWith returns the path of a dataset with a suffix: beside it, or in the working directory if it is not on disk.
func (f *Found) pathWith(suffix string) string {
	path := f.Location.Path
	if !f.OnDisk() { // no target
		path, _, _ = strings.Cut(disk.Address(path), "?")
		return "./" + filepath.Base(path) + suffix
	}
	if base := filepath.Base(path); base == "." || base == ".." {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
	}
	return strings.TrimRight(path, "/") + suffix
}

// PrefixOf returns the part of a location before the path, or "" if it names no format of this build.
func (c *Catalog) PrefixOf(location string) string {
	m := locationPrefix.FindStringSubmatch(location)
	if m == nil {
		return ""
	}
	if _, err := c.Format(m[1]); err != nil {
		return ""
	}
	return strings.TrimSuffix(location, m[3])
}
