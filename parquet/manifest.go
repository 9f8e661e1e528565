package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/disk"
	"kvferry/internal/text/jsonl"
	"kvferry/parquet/columns"
	"kvferry/record"
)

// ManifestName is the name of the file that is written last.
const ManifestName = "_manifest.jsonl"

// version is the version of the manifest and the columns.
const version = 1

// maxManifest limits the manifest that is read. A terabyte takes some megabytes.
const maxManifest = 1 << 30

// maxFirst is the length at which the first key of a row group is cut: the manifest has one for each.
const maxFirst = 128

// manifest lists the files of a dataset: a line for the dataset, one for each file and one for the end, whose sum is the
// XXH3 of the lines before it.
type manifest struct {
	head  head
	files []fileLine
	end   end
}

// What a dataset has rows of.
const (
	rowsElements = "elements"
	rowsKeys     = "keys"
)

type head struct {
	Parquet int    `json:"kvferry_parquet"` // version
	Creator string `json:"creator"`
	Source  string `json:"source"` // format
	// Home is the database that clients of the source start in; "" is 0.
	Home jsonl.Text `json:"default_db,omitempty"`
	Rows string     `json:"rows"` // rowsElements or rowsKeys
	Text string     `json:"text,omitempty"`
	Now  string     `json:"now"` // when expiry was evaluated
}

// fileLine is a file.
type fileLine struct {
	File    string      `json:"file"`
	DB      jsonl.Text  `json:"db"`
	Type    string      `json:"type,omitempty"`
	Records int64       `json:"records"`
	Rows    int64       `json:"rows"`
	Size    int64       `json:"size"`
	Tail    int64       `json:"tail"` // offset of the indexes and footer, whose XXH3 is Sum
	Sum     string      `json:"sum"`
	ByName  bool        `json:"by_name,omitempty"` // fields and members ascend in each record
	Groups  []groupLine `json:"groups"`
}

// groupLine is a row group.
type groupLine struct {
	Rows  int64      `json:"rows"`
	First jsonl.Text `json:"first"` // key, or its first maxFirst bytes
	End   int64      `json:"end"`   // offset; the next row group begins there
	Sum   string     `json:"sum"`   // XXH3 of its bytes; those of the first begin with the file
}

type end struct {
	Files    int    `json:"files"`
	Records  int64  `json:"records"`
	Rows     int64  `json:"rows"`
	Replaced int64  `json:"replaced,omitempty"` // values that were not UTF-8
	Errors   int    `json:"errors,omitempty"`   // findings of the dump
	Sum      string `json:"sum"`
}

// below reports whether the first key is certainly below lo, or at it if that is wanted.
func (g *groupLine) below(lo []byte, at bool) bool {
	if len(g.First) >= maxFirst && bytes.HasPrefix(lo, []byte(g.First)) {
		return false // the rest of the key is unknown
	}
	return string(g.First) < string(lo) || at && string(g.First) == string(lo)
}

func sumText(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// tail returns the indexes and the footer.
func (f *fileLine) tail() columns.Section {
	return columns.Section{Off: f.Tail, End: f.Size, Sum: parseSum(f.Sum)}
}

// section returns a row group.
func (f *fileLine) section(group int) columns.Section {
	g := &f.Groups[group]
	s := columns.Section{End: g.End, Sum: parseSum(g.Sum), Rows: g.Rows}
	if group > 0 {
		s.Off = f.Groups[group-1].End
	}
	return s
}

// parseSum returns a checksum, which check has looked at.
func parseSum(text string) uint64 {
	sum, _ := strconv.ParseUint(text, 16, 64)
	return sum
}

// append encodes the manifest.
func (m *manifest) append(dst []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Write(dst)
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	err := lines.Encode(&m.head)
	for i := range m.files {
		err = errors.Join(err, lines.Encode(&m.files[i]))
	}
	m.end.Sum = sumText(xxh3.Hash(out.Bytes()[len(dst):]))
	err = errors.Join(err, lines.Encode(&m.end))
	if out.Len()-len(dst) > maxManifest {
		err = errors.Join(err, fmt.Errorf("%s: more than %s bytes for %s: give the dump more --memory", ManifestName,
			record.Number(maxManifest), record.Count(int64(len(m.files)), "file")))
	}
	return out.Bytes(), err
}

// decodeManifest decodes a manifest.
func decodeManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	corrupt := func(off int, field string, err error) error {
		return &record.CorruptError{Format: Name, Off: int64(off), Field: field, Err: err}
	}
	at := 0
	for n := 0; at < len(b); n++ {
		line, rest, ended := bytes.Cut(b[at:], []byte("\n"))
		var into any = new(fileLine)
		last := len(rest) == 0
		switch {
		case !ended:
			return nil, corrupt(at, "manifest", record.ErrShort)
		case n == 0:
			into = &m.head
		case last:
			into = &m.end
		}
		if err := strictly(line, into); err != nil {
			return nil, corrupt(at, "manifest", err)
		}
		if n == 0 && m.head.Parquet != version {
			return nil, corrupt(at, "manifest", fmt.Errorf("version %d: %w", m.head.Parquet, record.ErrUnknown))
		}
		if f, ok := into.(*fileLine); ok {
			if err := f.check(); err != nil {
				return nil, corrupt(at, "manifest", err)
			}
			m.files = append(m.files, *f)
		}
		if last && n > 0 && m.end.Sum != sumText(xxh3.Hash(b[:at])) {
			return nil, corrupt(at, "manifest", errors.New("checksum mismatch"))
		}
		at += len(line) + 1
	}
	var records, rows int64
	for i := range m.files {
		records, rows = records+m.files[i].Records, rows+m.files[i].Rows
	}
	if m.end.Sum != "" && (records != m.end.Records || rows != m.end.Rows) {
		return nil, corrupt(len(b), "manifest", fmt.Errorf("%s records of %s rows, but %s of %s in the last line",
			record.Number(records), record.Number(rows), record.Number(m.end.Records), record.Number(m.end.Rows)))
	}
	if m.end.Sum == "" || m.end.Files != len(m.files) {
		return nil, corrupt(len(b), "manifest", fmt.Errorf("%s files, but %s in the last line", record.Number(len(m.files)),
			record.Number(m.end.Files)))
	}
	return m, nil
}

// strictly decodes a line whose every field is known.
func strictly(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if len(bytes.TrimSpace(line[d.InputOffset():])) > 0 {
		return record.ErrTrailing
	}
	return nil
}

// check refuses names that lead elsewhere, and numbers that cannot be.
func (f *fileLine) check() error {
	if f.File != path.Clean(f.File) || !filepath.IsLocal(filepath.FromSlash(f.File)) || strings.Contains(f.File, `\`) {
		return fmt.Errorf("file %q is not below the directory", f.File)
	}
	var rows, end int64
	for _, g := range f.Groups {
		if g.Rows <= 0 || g.End <= end || sumText(parseSum(g.Sum)) != g.Sum {
			return fmt.Errorf("%s: a row group of %s rows from %d to %d", f.File, record.Number(g.Rows), end, g.End)
		}
		rows, end = rows+g.Rows, g.End
	}
	if rows != f.Rows || rows == 0 || f.Tail != end || f.Tail > f.Size || sumText(parseSum(f.Sum)) != f.Sum {
		return fmt.Errorf("%s: %s rows in row groups of %s; its tail is at %d of %s bytes", f.File, record.Number(rows),
			record.Number(f.Rows), f.Tail, record.Number(f.Size))
	}
	return nil
}

// readManifest reads the manifest in a directory.
func readManifest(dir string) (*manifest, error) {
	name := disk.Join(dir, ManifestName)
	b, err := disk.ReadSmall(name, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	if c := (*record.CorruptError)(nil); errors.As(err, &c) {
		c.File = name
	}
	return m, err
}
