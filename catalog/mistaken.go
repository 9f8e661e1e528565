package catalog

import (
	"fmt"
	"regexp"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/object"
	"kvferry/redis/live"
)

// Mistaken locations: scheme://…, FORMAT:path and host:port.
var (
	schemed   = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9.+-]*)://(.*)$`)
	uppercase = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9.]*)((?:\+[A-Za-z0-9]+)?):(.*)$`)
	hostPort  = regexp.MustCompile(`^(?:([A-Za-z0-9][A-Za-z0-9.-]*)|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(?:/[0-9]*)?$`)
)

// parse is ParseLocation, but refuses mistaken locations, which would otherwise become paths.
func (c *Catalog) parse(given string) (Location, error) {
	if !live.IsAddress(given) && !object.IsAddress(given) {
		if meant := c.meant(given); meant != "" {
			return Location{}, format.Usagef("%s: %s", object.Shown(given), meant)
		}
	}
	loc, err := ParseLocation(given)
	if err != nil {
		return loc, format.Usagef("%w", err)
	}
	return loc, nil
}

// meant returns advice on a location that is probably mistaken, or "".
func (c *Catalog) meant(given string) string {
	if m := schemed.FindStringSubmatch(given); m != nil {
		return c.schemeMeant(m[1], m[2])
	}
	m := hostPort.FindStringSubmatch(given)
	if m != nil && !c.knows(m[1]) {
		return fmt.Sprintf("write redis://%s for a server, or ./%s for a path", given, given)
	}
	if m = uppercase.FindStringSubmatch(given); m == nil {
		return ""
	}
	lower := strings.ToLower(m[1])
	switch {
	case lower == m[1]:
		return ""
	case c.knows(lower):
		return fmt.Sprintf("format names are in lower case: write %s", object.Shown(lower+strings.ToLower(m[2])+":"+m[3]))
	}
	return c.nameMeant(lower)
}

// schemeMeant returns advice on a location with an unknown scheme.
func (c *Catalog) schemeMeant(scheme, rest string) string {
	lower := strings.ToLower(scheme)
	address, server := lower+"://"+rest, object.Shown("redis://"+rest)
	switch {
	case live.IsAddress(address), object.IsAddress(address):
		return "write " + object.Shown(address)
	case lower == "file":
		return "write the path alone, or FORMAT:" + rest
	case isRedis(lower):
		return "the address of a server is " + server
	case c.knows(lower):
		return fmt.Sprintf("%s is a format of files, not a server: write %s:/path for files, or %s for a running server with Redis commands",
			lower, lower, server)
	}
	return "no such scheme: servers are redis://, rediss://, redis+cluster://, rediss+cluster:// or unix://, objects s3://, http:// or https://; " +
		"if it is a path, write ./…"
}

// nameMeant returns advice on a name that is not a format, or "".
func (c *Catalog) nameMeant(name string) string {
	base := name
	if m := versionedName.FindStringSubmatch(name); m != nil {
		base = m[1]
	}
	for _, d := range c.Drivers {
		if d.Name == name {
			return fmt.Sprintf("a kind of store, which needs a format, as in ardb+%s:", name)
		}
	}
	switch base {
	case "json", "ndjson", "jsonl", "csv", "sql", "resp", "arrow":
		return "no format of datasets; kvferry dump --format writes jsonl, csv, sql, resp and arrow"
	case "file":
		return "write the path alone"
	}
	if isRedis(base) {
		return "Redis-compatible servers have three kinds of locations: rdb: for a dump, aof: for an append-only file or its directory, redis://HOST:PORT for a running server"
	}
	if base == name || !c.knows(base) {
		return ""
	}
	f, _ := c.Format(base)
	return fmt.Sprintf("write %s:, which is %s", base, f.Limits().Detail)
}

// isRedis reports whether a server of this name keeps its data in RDB files.
func isRedis(name string) bool {
	switch name {
	case "redis", "valkey", "keydb", "dragonfly", "tcp":
		return true
	}
	return false
}

// knows reports whether a name is a format, or a server with one.
func (c *Catalog) knows(name string) bool {
	for _, f := range c.Formats {
		if f.Name() == name {
			return true
		}
		for _, s := range Servers(f) {
			if s.Name == name {
				return true
			}
		}
	}
	return false
}
