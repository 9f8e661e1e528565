package redistest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// Records reads all records of a server, as texts by "db/key": type, expiry and elements. -0 becomes 0.
func (c *Client) Records(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range strings.Split(Text(c.Must(t, "INFO", "keyspace")), "\r\n") {
		db, _, ok := strings.Cut(line, ":")
		if !ok || !strings.HasPrefix(db, "db") {
			continue
		}
		c.Must(t, "SELECT", db[2:])
		for _, key := range c.Strings(t, "KEYS", "*") {
			if text := c.Record(t, key); text != "" {
				out[db[2:]+"/"+key] = text
			}
		}
	}
	return out
}

// Record reads one key of the selected database; "" if it does not exist.
func (c *Client) Record(t testing.TB, key string) string {
	t.Helper()
	typ := Text(c.Must(t, "TYPE", key))
	expire, err := c.Do("PEXPIRETIME", key)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	switch typ {
	case "none":
		return ""
	case "string":
		list = []string{Text(c.Must(t, "GET", key))}
	case "list":
		list = c.Strings(t, "LRANGE", key, "0", "-1")
	case "set":
		list = c.Strings(t, "SMEMBERS", key)
		sort.Strings(list)
	case "hash":
		list = c.fields(t, key)
	case "zset":
		list = pairs(c.Strings(t, "ZRANGE", key, "0", "-1", "WITHSCORES"), Score)
	case "stream":
		list = c.stream(t, key)
	}
	if len(list) == 0 { // all fields have expired since
		return ""
	}
	return Form(typ, max(expire.(int64), 0), list)
}

// fields reads a hash, with the expiries of its fields if the server supports them.
func (c *Client) fields(t testing.TB, key string) []string {
	flat := c.Strings(t, "HGETALL", key)
	for i := 0; i < len(flat); i += 2 {
		times, err := c.Do("HPEXPIRETIME", key, "FIELDS", "1", flat[i])
		if err != nil {
			break
		}
		if ms, _ := times.([]any)[0].(int64); ms > 0 {
			flat[i+1] += fmt.Sprintf("@%d", ms)
		}
	}
	return pairs(flat, nil)
}

// Form formats a record for Records.
func Form(typ string, expire int64, list []string) string {
	return fmt.Sprintf("%s %d %q", typ, expire, list)
}

// Score formats a score canonically.
func Score(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return strconv.FormatFloat(f+0, 'g', -1, 64)
}

func pairs(flat []string, value func(string) string) []string {
	var out []string
	for i := 0; i+1 < len(flat); i += 2 {
		v := flat[i+1]
		if value != nil {
			v = value(v)
		}
		out = append(out, flat[i]+"="+v)
	}
	slices.Sort(out)
	return out
}

// stream reads the entries, the last id and the groups of a stream.
func (c *Client) stream(t testing.TB, key string) []string {
	var out []string
	for _, e := range c.Must(t, "XRANGE", key, "-", "+").([]any) {
		entry := e.([]any)
		out = append(out, Entry(Text(entry[0]), texts(entry[1])))
	}
	info := fields(c.Must(t, "XINFO", "STREAM", key, "FULL", "COUNT", "0"))
	out = append(out, fmt.Sprintf("last=%s deleted=%s added=%s", Text(info["last-generated-id"]),
		Text(info["max-deleted-entry-id"]), Text(info["entries-added"])))
	var groups []string
	for _, g := range info["groups"].([]any) {
		group := fields(g)
		read := Text(group["entries-read"])
		if group["entries-read"] == nil {
			read = "-1"
		}
		groups = append(groups, fmt.Sprintf("group %s last=%s read=%s", Text(group["name"]), Text(group["last-delivered-id"]),
			read))
		for _, x := range group["consumers"].([]any) {
			groups = append(groups, fmt.Sprintf("consumer %s", Text(fields(x)["name"])))
		}
		for _, p := range group["pending"].([]any) {
			row := p.([]any) // id, consumer, delivered, deliveries
			groups = append(groups, fmt.Sprintf("pending %s %s %s", Text(row[0]), Text(row[1]), Text(row[3])))
		}
	}
	return append(out, sortGroups(groups)...)
}

// sortGroups puts groups in the order of their names, and the lines of each in theirs: files have them in any.
func sortGroups(lines []string) []string {
	var groups [][]string
	for _, line := range lines {
		if strings.HasPrefix(line, "group ") {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], line)
	}
	for _, g := range groups {
		sort.Strings(g[1:])
	}
	slices.SortFunc(groups, slices.Compare[[]string])
	return slices.Concat(groups...)
}

// Entry formats an entry of a stream.
func Entry(id string, pairs []string) string { return fmt.Sprintf("%s %q", id, pairs) }

// ID formats a 16-byte id.
func ID(b []byte) string {
	return fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]))
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = Text(x)
	}
	return out
}

func fields(v any) map[string]any {
	list, _ := v.([]any)
	out := map[string]any{}
	for i := 0; i+1 < len(list); i += 2 {
		out[Text(list[i])] = list[i+1]
	}
	return out
}
