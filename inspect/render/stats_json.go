package render

import (
	"io"

	"kvferry/inspect"
	"kvferry/inspect/stats"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// The JSON form of statistics. Its names are part of the public interface.
type (
	jsonStats struct {
		Tool   string `json:"tool"`
		Source string `json:"source"`
		Format string `json:"format"`
		NowMS  int64  `json:"now_ms"`
		inspect.Selected
		OnDisk      string        `json:"bytes_on_disk_of"`
		Databases   []string      `json:"databases"`
		Types       []jsonType    `json:"types"`
		Expiry      []jsonBucket  `json:"expiry"`
		TopBytes    []jsonBig     `json:"top_by_bytes"`
		TopElements []jsonBig     `json:"top_by_elements"`
		TopRedis    []jsonBig     `json:"top_in_redis,omitempty"`
		Redis       int64         `json:"redis_bytes,omitempty"`
		Prefixes    *jsonPrefix   `json:"prefixes"`
		Deletable   []jsonDelete  `json:"deletable"`
		Rows        []jsonGarbage `json:"rows"`
		Freed       int64         `json:"bytes_to_free"`
		Levels      []jsonLevel   `json:"levels"`
		Blobs       []jsonLevel   `json:"blobs"`
		Logs        jsonLevel     `json:"logs"`
		Other       jsonLevel     `json:"other_files"`
		Files       int           `json:"files"`
		Bytes       int64         `json:"bytes"`
	}
	jsonType struct {
		DB       jsonl.Text         `json:"db"`
		Type     string             `json:"type"`
		Records  int64              `json:"records"`
		Elements int64              `json:"elements"`
		Bytes    int64              `json:"bytes"`
		Redis    int64              `json:"redis_bytes,omitempty"`
		Disk     int64              `json:"bytes_on_disk"`
		Shared   bool               `json:"files_shared_with_other_types"`
		Expiring int64              `json:"expiring"`
		Expired  int64              `json:"expired"`
		Sizes    stats.Distribution `json:"record_bytes"`
		Lengths  stats.Distribution `json:"record_elements"`
		KeySizes stats.Distribution `json:"key_bytes"`
		Largest  []jsonBig          `json:"largest"`
	}
	jsonBucket struct {
		Name    string `json:"name"`
		BelowMS int64  `json:"below_ms,omitempty"`
		jsonSum
	}
	jsonSum struct {
		Records  int64 `json:"records"`
		Elements int64 `json:"elements"`
		Bytes    int64 `json:"bytes"`
		Redis    int64 `json:"redis_bytes,omitempty"`
	}
	jsonBig struct {
		DB       jsonl.Text `json:"db"`
		Type     string     `json:"type"`
		Key      Text       `json:"key"`
		Bytes    int64      `json:"bytes"`
		Redis    int64      `json:"redis_bytes,omitempty"`
		Elements int64      `json:"elements"`
		ExpireMS int64      `json:"expire_at_ms"`
	}
	jsonPrefix struct {
		DB      jsonl.Text `json:"db,omitempty"`
		Pattern Text       `json:"pattern"`
		// First and Last are set if the pattern has * for names between them.
		First Text `json:"first_key,omitempty"`
		Last  Text `json:"last_key,omitempty"`
		jsonSum
		Disk     int64              `json:"bytes_on_disk,omitempty"`
		Share    float64            `json:"share"`
		Types    map[string]jsonSum `json:"types"`
		Expiry   []jsonBucket       `json:"expiry"`
		Largest  *jsonBig           `json:"largest,omitempty"`
		Unlisted int                `json:"prefixes_not_listed"`
		Children []*jsonPrefix      `json:"prefixes"`
	}
	jsonDelete struct {
		Why     string     `json:"why"`
		What    string     `json:"what"`
		DB      jsonl.Text `json:"db,omitempty"`
		Pattern Text       `json:"pattern,omitempty"`
		Records int64      `json:"records"`
		Of      int64      `json:"of_records,omitempty"`
		Bytes   int64      `json:"bytes"`
		Command string     `json:"command"`
	}
	jsonGarbage struct {
		Keyspace     string           `json:"keyspace"`
		Entries      int64            `json:"entries"`
		Visible      int64            `json:"visible"`
		Superseded   int64            `json:"superseded"`
		Tombstones   int64            `json:"tombstones"`
		RangeDeleted int64            `json:"range_deleted"`
		Folded       int64            `json:"folded"`
		Live         int64            `json:"live"`
		Classes      map[string]int64 `json:"classes"`
		Disk         int64            `json:"bytes_on_disk"`
		Freed        int64            `json:"bytes_to_free"`
	}
	jsonLevel struct {
		Keyspace string   `json:"keyspace,omitempty"`
		Level    int      `json:"level"`
		Files    int      `json:"files"`
		Bytes    int64    `json:"bytes"`
		Entries  int64    `json:"entries"`
		Deletes  int64    `json:"tombstones"`
		Unknown  int      `json:"files_without_counts"`
		Garbage  int64    `json:"garbage_bytes,omitempty"`
		Codecs   []string `json:"codecs"`
	}
)

// StatsJSON prints the content of a dataset as one JSON document. tool is kvferry's version.
func StatsJSON(w io.Writer, tool string, s *stats.Result) error {
	return indented(w, newJSONStats(tool, s))
}

func newJSONStats(tool string, s *stats.Result) *jsonStats {
	out := &jsonStats{Tool: "kvferry " + tool, Source: s.Source, Selected: s.Selected, OnDisk: onDisk, Format: s.Format,
		NowMS: s.NowMS, Databases: s.Databases, Types: []jsonType{}, Expiry: []jsonBucket{},
		TopBytes: bigKeys(s.TopBytes), TopElements: bigKeys(s.TopElements), TopRedis: bigKeys(s.TopRedis), Redis: s.Redis,
		Deletable: []jsonDelete{}, Rows: []jsonGarbage{},
		Levels: []jsonLevel{}, Blobs: []jsonLevel{}, Logs: newJSONLevel(&s.Files.Logs), Other: newJSONLevel(&s.Files.Other)}
	out.Files, out.Bytes = s.Files.Sum()
	for _, t := range s.Types {
		out.Types = append(out.Types, jsonType{jsonl.Text(t.DB), t.Type.String(), t.Records, t.Elements, t.Bytes, t.Redis, t.Disk,
			t.Shared, t.Expiring, t.Expired, t.Sizes, t.Lengths, t.KeySizes, bigKeys(t.Largest)})
	}
	out.Expiry = append(out.Expiry, buckets(s.Expiry)...)
	if s.Prefixes != nil {
		out.Prefixes = newJSONPrefix(s.Prefixes, weight(s.Prefixes))
	}
	for i := range s.Deletable {
		d := &s.Deletable[i]
		out.Deletable = append(out.Deletable, jsonDelete{d.Why, deletableText(d), jsonl.Text(d.DB), d.Pattern, d.Records, d.Of,
			d.Bytes, deletableLine(d)})
	}
	for i := range s.Garbage {
		out.Rows = append(out.Rows, newJSONGarbage(&s.Garbage[i]))
		out.Freed += s.Garbage[i].Freed
	}
	for i := range s.Files.Levels {
		out.Levels = append(out.Levels, newJSONLevel(&s.Files.Levels[i]))
	}
	for i := range s.Files.Blobs {
		out.Blobs = append(out.Blobs, newJSONLevel(&s.Files.Blobs[i]))
	}
	return out
}

func bigKeys(keys []stats.BigKey) []jsonBig {
	out := []jsonBig{}
	for _, k := range keys {
		out = append(out, jsonBig{jsonl.Text(k.DB), k.Type.String(), k.Key, k.Bytes, k.Redis, k.Elements, k.ExpireMS})
	}
	return out
}

func buckets(expiry []stats.ExpiryBucket) (out []jsonBucket) {
	for _, e := range expiry {
		out = append(out, jsonBucket{e.Name, e.Below.Milliseconds(), jsonSum(e.Sum)})
	}
	return out
}

func newJSONPrefix(p *stats.Prefix, whole int64) *jsonPrefix {
	out := &jsonPrefix{DB: jsonl.Text(p.DB), Pattern: p.Pattern, jsonSum: jsonSum(p.Sum()), Disk: p.Disk,
		Share: float64(weight(p)) / float64(max(whole, 1)), Types: make(map[string]jsonSum), Unlisted: p.Unlisted,
		Children: []*jsonPrefix{}}
	for t, sum := range p.Types {
		if sum.Records > 0 {
			out.Types[record.Type(t).String()] = jsonSum(sum)
		}
	}
	for _, e := range buckets(p.Buckets()) {
		if e.Records > 0 {
			out.Expiry = append(out.Expiry, e)
		}
	}
	if p.Folded {
		out.First, out.Last = p.First, p.Last
	}
	if p.Largest.Type != 0 {
		out.Largest = &bigKeys([]stats.BigKey{p.Largest})[0]
	}
	for _, c := range p.Children {
		out.Children = append(out.Children, newJSONPrefix(c, whole))
	}
	return out
}

func newJSONGarbage(g *stats.Garbage) jsonGarbage {
	out := jsonGarbage{Keyspace: g.Keyspace, Entries: g.Entries, Visible: g.Visible, Superseded: g.Superseded,
		Tombstones: g.Tombstones, RangeDeleted: g.RangeDeleted, Folded: g.Folded, Live: g.Live(),
		Classes: make(map[string]int64), Disk: g.Bytes, Freed: g.Freed}
	for c, n := range g.Rows {
		if n > 0 {
			out.Classes[record.Class(c).String()] = n
		}
	}
	return out
}

func newJSONLevel(l *stats.Level) jsonLevel {
	out := jsonLevel{string(l.Keyspace), l.Level, l.Files, l.Bytes, l.Entries, l.Deletes, l.Unknown, l.Garbage, l.Codecs}
	if out.Codecs == nil {
		out.Codecs = []string{}
	}
	return out
}
