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

// Colours of types.
var typeColours = map[string]int{"string": 0, "hash": 1, "list": 2, "set": 3, "zset": 4, "stream": 5}

// label names a type, with its database if the dataset has several.
func (h *htmlPage) label(t *jsonType) string {
	if len(h.stats.Databases) > 1 {
		return string(t.DB) + " " + t.Type
	}
	return t.Type
}

func (h *htmlPage) title(tool string) {
	s := h.stats
	h.add("<h1>%s</h1>\n", esc(s.Source))
	lines := aboutLines(tool, s.NowMS, &s.Selected, onDisk)
	lines[0] = fmt.Sprintf("%s, %s, %s", s.Format, record.Count(int64(len(s.Databases)), "database"), lines[0])
	for _, line := range lines {
		h.add("<p class=\"sub\">%s</p>\n", esc(line))
	}
}

func (h *htmlPage) tiles() {
	s := h.stats
	var records, elements, bytes, expiring int64
	for i := range s.Types {
		t := &s.Types[i]
		records, elements, bytes, expiring = records+t.Records, elements+t.Elements, bytes+t.Bytes, expiring+t.Expiring
	}
	h.add("<div class=\"tiles\">\n")
	for _, t := range [][2]string{{count(records), "records"}, {count(elements), "elements"}, {record.Bytes(bytes), "logical bytes"},
		{record.Bytes(s.Bytes), "in " + record.Count(int64(s.Files), "file")}, {count(expiring), "records that expire"}, {record.Bytes(s.Freed), "a conversion would free"}} {
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
		chart("Bytes by type", func(t *jsonType) int64 { return t.Bytes }, record.Bytes)
		chart("Records by type", func(t *jsonType) int64 { return t.Records }, count)
	})
	var rows [][]Cell
	shared := false
	for i := range s.Types {
		t := &s.Types[i]
		shared = shared || t.Shared
		rows = append(rows, inRedis(s.Redis > 0, 5, Size(t.Redis), words(string(t.DB)), words(t.Type), Number(t.Records),
			Number(t.Elements),
			Size(t.Bytes), Size(t.Disk), Size(t.Sizes.P50), Size(t.Sizes.P99), Size(t.Sizes.Max), Number(t.Lengths.P50),
			Number(t.Lengths.P99), Number(t.Lengths.Max), Number(t.Expiring), Number(t.Expired)))
	}
	h.section("Types", func() {
		h.table("Types", inRedis(s.Redis > 0, 5, redisColumn,
			[]column{{"db", "text"}, {"type", "text"}, {"records", ""}, {"elements", ""},
				{"bytes", ""}, {"on disk", ""}, {"bytes p50", ""}, {"bytes p99", ""}, {"bytes max", ""}, {"elements p50", ""},
				{"elements p99", ""}, {"elements max", ""}, {"expiring", ""}, {"expired", ""}}...), rows)
		if shared {
			h.note("Bytes on disk include files that hold several types.")
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
	many("Sizes of records, by powers of two", func(t *jsonType) []int64 { return t.Sizes.Powers }, record.Bytes)
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
		h.bars("Memory in Redis", lines, record.Bytes)
		h.note("Estimate of MEMORY USAGE in Redis 7.0 with default settings. With the hash tables of the keys: " +
			record.Bytes(s.Redis) + ".")
	})
}

// rowStates are the states of rows. Each row is in one.
var rowStates = []struct {
	name   string
	colour int
	count  func(*jsonGarbage) int64
}{
	{"live", 2, func(r *jsonGarbage) int64 { return r.Live }},
	{"expired", 1, func(r *jsonGarbage) int64 { return r.Classes["expired"] }},
	{"stale", 3, func(r *jsonGarbage) int64 { return r.Classes["stale"] }},
	{"deleted", 5, func(r *jsonGarbage) int64 { return r.Classes["deleted"] }},
	{"orphan", 4, func(r *jsonGarbage) int64 { return r.Classes["orphan"] }},
	{"malformed", 7, func(r *jsonGarbage) int64 { return r.Classes["malformed"] }},
	{"superseded", 0, func(r *jsonGarbage) int64 { return r.Superseded + r.RangeDeleted + r.Folded }},
	{"tombstones", 6, func(r *jsonGarbage) int64 { return r.Tombstones }},
}

// states adds charts of expiry times and row outcomes.
func (h *htmlPage) states() {
	s := h.stats
	var records, bytes, rows []line
	for _, e := range s.Expiry {
		records = append(records, line{e.Name, []amount{{e.Records, 0, ""}}})
		bytes = append(bytes, line{e.Name, []amount{{e.Bytes, 0, ""}}})
	}
	for i := range s.Rows {
		l := line{name: s.Rows[i].Keyspace}
		for _, c := range rowStates {
			l.parts = append(l.parts, amount{c.count(&s.Rows[i]), c.colour, c.name})
		}
		rows = append(rows, l)
	}
	h.pair(func() {
		h.section("Expiry by bytes", func() { h.bars("Expiry by bytes", bytes, record.Bytes) })
		h.section("Expiry by records", func() { h.bars("Expiry by records", records, count) })
	})
	h.section("Rows by outcome", func() {
		h.bars("Rows by outcome", rows, count)
		h.add("<div class=\"legend\">")
		for _, c := range rowStates {
			h.add("<span><i style=\"background:%s\"></i>%s</span>", shade(c.colour), c.name)
		}
		h.add("</div>\n")
	})
}

func (h *htmlPage) keys() {
	s := h.stats
	h.largest("Largest by bytes", s.TopBytes)
	h.largest("Largest by elements", s.TopElements)
	if len(s.TopRedis) > 0 {
		h.largest("Largest in Redis", s.TopRedis)
	}
	for i := range s.Types {
		if t := &s.Types[i]; len(s.Types) > 1 && len(t.Largest) > 0 {
			h.largest("Largest of "+h.label(t), t.Largest)
		}
	}
}

// largest adds a table of keys. A narrow window shows only the first columns, so the keys come first.
func (h *htmlPage) largest(title string, keys []jsonBig) {
	redis := h.stats.Redis > 0
	columns := inRedis(redis, 2, redisColumn,
		[]column{{"key", "text key"}, {"bytes", ""}, {"elements", ""}, {"db", "text"}, {"type", "text"}, {"expires", ""}}...)
	var rows [][]Cell
	for _, k := range keys {
		rows = append(rows, inRedis(redis, 2, Size(k.Redis), keyCell(k.Key), Size(k.Bytes), Number(k.Elements),
			words(string(k.DB)), words(k.Type), Cell{timeText(k.ExpireMS), k.ExpireMS}))
	}
	h.section(title, func() { h.table(title, columns, rows) })
}

func (h *htmlPage) garbage() {
	columns := []column{{"keyspace", "text"}, {"entries", ""}}
	for _, c := range rowStates {
		columns = append(columns, column{c.name, ""})
	}
	columns = append(columns, column{"on disk", ""}, column{"to free", ""})
	var rows [][]Cell
	for i := range h.stats.Rows {
		r := &h.stats.Rows[i]
		row := []Cell{words(r.Keyspace), Number(r.Entries)}
		for _, c := range rowStates {
			row = append(row, Number(c.count(r)))
		}
		rows = append(rows, append(row, Size(r.Disk), Size(r.Freed)))
	}
	h.section("Garbage", func() { h.table("Garbage", columns, rows) })
}

func (h *htmlPage) files() {
	s := h.stats
	var rows [][]Cell
	add := func(l *jsonLevel, name string, level int) {
		text := ""
		if level >= 0 {
			text = fmt.Sprint(level)
		}
		rows = append(rows, []Cell{words(name), {text, int64(level)}, Number(int64(l.Files)), Size(l.Bytes), Number(l.Entries),
			Number(l.Deletes), words(strings.Join(l.Codecs, "+"))})
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
			h.table("Files", []column{{"keyspace", "text"}, {"level", ""}, {"files", ""}, {"bytes", ""}, {"entries", ""},
				{"tombstones", ""}, {"codecs", "text"}}, rows)
		})
	}
}
