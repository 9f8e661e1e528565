package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"kvferry/record"
)

// keyText shows a key: valid UTF-8 as text with control characters escaped, otherwise each non-ASCII byte escaped.
func keyText(key []byte) string {
	var b strings.Builder
	text := utf8.Valid(key)
	for _, r := range string(key) {
		if text && r >= ' ' && r != 0x7f {
			b.WriteRune(r)
		} else if text {
			fmt.Fprintf(&b, `\x%02x`, r)
		}
	}
	if text {
		return b.String()
	}
	for _, c := range key {
		if c >= ' ' && c <= '~' && c != '\\' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

func timeText(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// Colours of types and of row outcomes.
var typeColours = map[string]int{"string": 0, "hash": 1, "list": 2, "set": 3, "zset": 4, "stream": 5}

var rowColours = []struct {
	name   string
	colour int
}{{"live", 2}, {"expired", 1}, {"stale", 3}, {"deleted", 5}, {"orphan", 4}, {"other", 6}}

// label names a type, with its database if the dataset has several.
func (h *htmlPage) label(t *jsonType) string {
	if len(h.stats.Databases) > 1 {
		return string(t.DB) + " " + t.Type
	}
	return t.Type
}

func (h *htmlPage) title(source, version string) {
	s := h.stats
	h.add("<h1>%s</h1>\n<p class=\"sub\">%s</p>\n", esc(source), esc(fmt.Sprintf("%s, %s, as of %s, by kvferry %s", s.Format,
		record.Plural(int64(len(s.Databases)), "database"), timeText(s.NowMS), version)))
}

func (h *htmlPage) tiles() {
	s := h.stats
	var records, elements, bytes, expiring int64
	for i := range s.Types {
		t := &s.Types[i]
		records, elements, bytes, expiring = records+t.Records, elements+t.Elements, bytes+t.Bytes, expiring+t.Expiring
	}
	h.add("<div class=\"tiles\">\n")
	for _, t := range [][2]string{{count(records), "records"}, {count(elements), "elements"}, {Bytes(bytes), "logical bytes"},
		{Bytes(s.Bytes), "in " + record.Plural(int64(s.Files), "file")}, {count(expiring), "records that expire"}, {Bytes(s.Freed), "a conversion would free"}} {
		h.add("<div class=\"tile\"><b>%s</b> <span>%s</span></div>\n", esc(t[0]), esc(t[1]))
	}
	h.add("</div>\n")
}

func (h *htmlPage) types() {
	s := h.stats
	chart := func(title string, value func(*jsonType) int64, show func(int64) string) {
		var lines []line
		for i := range s.Types {
			t := &s.Types[i]
			lines = append(lines, line{h.label(t), []amount{{value(t), typeColours[t.Type], ""}}})
		}
		h.section(title, func() { h.bars(title, lines, show) })
	}
	h.pair(func() {
		chart("Bytes by type", func(t *jsonType) int64 { return t.Bytes }, Bytes)
		chart("Records by type", func(t *jsonType) int64 { return t.Records }, count)
	})
	var rows [][]datum
	shared := false
	for i := range s.Types {
		t := &s.Types[i]
		shared = shared || t.Shared
		rows = append(rows, inRedis(s.Redis > 0, 5, size(t.Redis), words(string(t.DB)), words(t.Type), number(t.Records), number(t.Elements),
			size(t.Bytes), size(t.Disk), size(t.Sizes.P50), size(t.Sizes.P99), size(t.Sizes.Max), number(t.Lengths.P50),
			number(t.Lengths.P99), number(t.Lengths.Max), number(t.Expiring), number(t.Expired)))
	}
	h.section("Types", func() {
		h.table("Types", inRedis(s.Redis > 0, 5, redisColumn, []column{{"db", "text"}, {"type", "text"}, {"records", ""}, {"elements", ""},
			{"bytes", ""}, {"on disk", ""}, {"bytes p50", ""}, {"bytes p99", ""}, {"bytes max", ""}, {"elements p50", ""},
			{"elements p99", ""}, {"elements max", ""}, {"expiring", ""}, {"expired", ""}}...), rows)
		if shared {
			h.note("Bytes on disk are those of files that hold several types.")
		}
		h.note("Quantiles are within 1.6 %.")
	})
}

func (h *htmlPage) distributions() {
	many := func(title string, powers func(*jsonType) []int64, unit func(int64) string) {
		h.section(title, func() {
			h.add("<div class=\"multi\">\n")
			for i := range h.stats.Types {
				t := &h.stats.Types[i]
				h.histogram(h.label(t), powers(t), unit, typeColours[t.Type])
			}
			h.add("</div>\n")
		})
	}
	many("Sizes of records, by powers of two", func(t *jsonType) []int64 { return t.Sizes.Powers }, Bytes)
	many("Elements of records, by powers of two", func(t *jsonType) []int64 { return t.Lengths.Powers }, count)
}

// redisColumn is shown if the memory in Redis was estimated.
var redisColumn = column{"in Redis", ""}

// memory adds the estimated memory in Redis, if requested.
func (h *htmlPage) memory() {
	s := h.stats
	if s.Redis == 0 {
		return
	}
	var lines []line
	for i := range s.Types {
		t := &s.Types[i]
		lines = append(lines, line{h.label(t), []amount{{t.Redis, typeColours[t.Type], ""}}})
	}
	h.section("Memory in Redis", func() {
		h.bars("Memory in Redis", lines, Bytes)
		h.note("Estimate of MEMORY USAGE in Redis 7.0 with default settings. With the hash tables of the keys: " + Bytes(s.Redis) + ".")
	})
}

// states adds charts of expiry times and row outcomes.
func (h *htmlPage) states() {
	s := h.stats
	var expiry, rows []line
	for _, e := range s.Expiry {
		expiry = append(expiry, line{e.Name, []amount{{e.Records, 0, ""}}})
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		l := line{r.Keyspace, []amount{{r.Live, 2, "live"}}}
		rest := r.Entries - r.Live
		for _, c := range rowColours[1 : len(rowColours)-1] {
			l.parts = append(l.parts, amount{r.Classes[c.name], c.colour, c.name})
			rest -= r.Classes[c.name]
		}
		l.parts = append(l.parts, amount{max(rest, 0), 6, "superseded, tombstones, malformed"})
		rows = append(rows, l)
	}
	h.pair(func() {
		h.section("Expiry", func() { h.bars("Expiry", expiry, count) })
		h.section("Rows by outcome", func() {
			h.bars("Rows by outcome", rows, count)
			h.add("<div class=\"legend\">")
			for _, c := range rowColours {
				h.add("<span><i style=\"background:%s\"></i>%s</span>", shade(c.colour), c.name)
			}
			h.add("</div>\n")
		})
	})
}

func (h *htmlPage) keys() {
	s := h.stats
	columns := inRedis(s.Redis > 0, 1, redisColumn,
		[]column{{"bytes", ""}, {"elements", ""}, {"db", "text"}, {"type", "text"}, {"expires", ""}, {"key", "text key"}}...)
	for _, top := range []struct {
		title string
		keys  []jsonBig
	}{{"Largest by bytes", s.TopBytes}, {"Largest by elements", s.TopElements}, {"Largest in Redis", s.TopRedis}} {
		if len(top.keys) == 0 && top.title == "Largest in Redis" {
			continue
		}
		var rows [][]datum
		for _, k := range top.keys {
			rows = append(rows, inRedis(s.Redis > 0, 1, size(k.Redis), []datum{size(k.Bytes), number(k.Elements), words(string(k.DB)), words(k.Type),
				{timeText(k.ExpireMS), k.ExpireMS}, keyCell(k.Key)}...))
		}
		h.section(top.title, func() { h.table(top.title, columns, rows) })
	}
	if len(s.Prefixes) == 0 {
		return
	}
	var rows [][]datum
	add := func(p *jsonPrefix, name string) {
		rows = append(rows, inRedis(s.Redis > 0, 3, size(p.Redis), number(p.Records), number(p.Elements), size(p.Bytes), words(name)))
	}
	for i := range s.Prefixes {
		name := keyText(*s.Prefixes[i].Prefix)
		if name == "" {
			name = "(none)"
		}
		add(&s.Prefixes[i], name)
	}
	if s.MorePrefixes.Records > 0 {
		add(&s.MorePrefixes, "(others)")
	}
	h.section("Prefixes", func() {
		h.table("Prefixes", inRedis(s.Redis > 0, 3, redisColumn,
			[]column{{"records", ""}, {"elements", ""}, {"bytes", ""}, {"prefix", "text key"}}...), rows)
		if s.PrefixMisses > 0 {
			h.note("There are too many prefixes to count: each line may lack up to " + Bytes(s.PrefixMisses) + ".")
		}
	})
}

func (h *htmlPage) garbage() {
	classes := []string{"expired", "stale", "deleted", "orphan", "malformed"}
	columns := []column{{"keyspace", "text"}, {"entries", ""}, {"live", ""}}
	for _, c := range classes {
		columns = append(columns, column{c, ""})
	}
	columns = append(columns, column{"superseded", ""}, column{"tombstones", ""}, column{"on disk", ""}, column{"to free", ""})
	var rows [][]datum
	for i := range h.stats.Rows {
		r := &h.stats.Rows[i]
		row := []datum{words(r.Keyspace), number(r.Entries), number(r.Live)}
		for _, c := range classes {
			row = append(row, number(r.Classes[c]))
		}
		rows = append(rows, append(row, number(r.Superseded+r.RangeDeleted+r.Folded), number(r.Tombstones), size(r.Disk), size(r.Freed)))
	}
	h.section("Garbage", func() { h.table("Garbage", columns, rows) })
}

func (h *htmlPage) files() {
	s := h.stats
	var rows [][]datum
	add := func(l *jsonLevel, name string, level int) {
		text := ""
		if level >= 0 {
			text = fmt.Sprint(level)
		}
		rows = append(rows, []datum{words(name), {text, int64(level)}, number(int64(l.Files)), size(l.Bytes), number(l.Entries), number(l.Deletes),
			words(strings.Join(l.Codecs, "+"))})
	}
	for i := range s.Levels {
		add(&s.Levels[i], s.Levels[i].Keyspace, s.Levels[i].Level)
	}
	for i := range s.Blobs {
		add(&s.Blobs[i], s.Blobs[i].Keyspace+" (blobs)", -1)
	}
	if s.Logs.Files > 0 {
		add(&s.Logs, "logs", -1)
	}
	if s.Other.Files > 0 {
		add(&s.Other, "MANIFEST, CURRENT", -1)
	}
	if len(rows) > 0 {
		h.section("Files", func() {
			h.table("Files", []column{{"keyspace", "text"}, {"level", ""}, {"files", ""}, {"bytes", ""}, {"entries", ""}, {"tombstones", ""}, {"codecs", "text"}}, rows)
		})
	}
}
