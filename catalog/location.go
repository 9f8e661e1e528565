package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/object"
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
