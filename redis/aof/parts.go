package aof

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// FindManifest is the kind of the finding that the manifest of a log is missing.
const FindManifest = "aof-manifest"

// part is the name of a file of a log of several parts: appendonly.aof.2.base.rdb, appendonly.aof.3.incr.aof.
type part struct {
	name, log string
	seq       int64
	base      bool
}

var partName = regexp.MustCompile(`^(.+)\.([0-9]+)\.(?:(base)\.(?:rdb|aof)|incr\.aof)$`)

// parsePart returns nil for the name of another file.
func parsePart(name string) *part {
	m := partName.FindStringSubmatch(name)
	if m == nil || strings.HasPrefix(name, unfinished) {
		return nil
	}
	seq, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return nil
	}
	return &part{name, m[1], seq, m[3] != ""}
}

// guess describes a log without its manifest, whose files are known by their names only.
type guess struct {
	manifest string // its path
	state    string // "is missing", or that it does not list the file in the location
	found    string // the files that it would list
	missing  string // another missing file, or "" if the numbers in the names have no gap
	backup   bool   // a base alone, as a backup of Redis 8.10 before it is sealed
	named    bool   // the location is one of the files
}

// ManifestError means that a log has no manifest. A salvage reads the base and then the increments by their numbers.
type ManifestError struct{ *guess }

// Error names the missing manifest.
func (e *ManifestError) Error() string {
	way := "restore it, or name one of the files to read the base and then the increments by their numbers"
	if e.missing != "" {
		way = "restore it"
	}
	return fmt.Sprintf("%s %s, and only the manifest lists the files of the log: found %s; %s", e.manifest, e.state, e.Reason(),
		way)
}

// Reason describes the files.
func (g *guess) Reason() string {
	if g.missing == "" {
		return g.found
	}
	return g.found + ", without " + g.missing
}

// refused reports whether the files are not read unless damage is permitted.
func (g *guess) refused() bool { return !g.backup && (!g.named || g.missing != "") }

// finding is the finding about the log.
func (g *guess) finding() record.Finding {
	f := record.Finding{Kind: FindManifest, Severity: record.Error, Place: record.InFile(filepath.Base(g.manifest))}
	switch {
	case g.backup:
		f.Severity, f.Detail = record.Note, "the base has no manifest, as a backup of Redis 8.10 before BACKUP SEAL; increments would follow it"
		return f
	case g.named && g.missing == "":
		f.Severity, f.Detail = record.Warning, "the manifest "+g.state+"; kvferry reads "+g.found+", in the order of their numbers"
		return f
	}
	f.Detail = "the manifest " + g.state + ", and only it lists the files of the log; kvferry reads " + g.Reason() + ", in the order of their numbers"
	f.Lost, f.Sure = "no part of the existing files", "without the manifest, kvferry cannot know whether another file is missing"
	if g.missing != "" {
		f.Lost, f.Sure = "all writes in "+g.missing, "the other files do not show how many"
	}
	return f
}

// leftOut returns the files beside a manifest that have the name of its log, hold data, and are not listed.
func (m *Manifest) leftOut(path string) (left []*part) {
	entries, _ := disk.ReadDir(disk.Dir(path)) // some locations have no listing
	for _, e := range entries {
		p := parsePart(e.Name())
		if p == nil || p.log+manifestSuffix != filepath.Base(path) ||
			slices.ContainsFunc(m.Parts, func(x Part) bool { return x.Name == p.name }) {
			continue
		}
		if st, serr := e.Info(); serr == nil && st.Size() > 0 { // a file may be deleted meanwhile
			left = append(left, p)
		}
	}
	return left
}

// reportLeft reports files that the manifest does not list. Servers list an increment before they write commands to it, and
// take off the list what they replace by a base, so only a file with a greater number is a sign of a wrong manifest.
func (l *Log) reportLeft(report func(record.Finding)) {
	var last int64
	for _, name := range l.Files {
		if p := parsePart(name); p != nil {
			last = max(last, p.seq)
		}
	}
	for _, p := range l.left {
		f := record.Finding{Kind: record.FindDatasetBeside, Severity: record.Note, Place: record.InFile(p.name),
			Detail: "the manifest of the log does not list this file, so a server does not load it"}
		if p.seq > last {
			f.Severity, f.Detail = record.Warning, f.Detail+"; it is newer than the listed files, so the manifest may be an old copy"
		}
		report(f)
	}
}

// findPart finds the log of one of its files: by the manifest that lists the file, or by the names of the files.
func findPart(dir, name string) (*Log, error) {
	manifest := disk.Join(dir, parsePart(name).log+manifestSuffix)
	if _, err := disk.Stat(manifest); err != nil {
		return unlisted(dir, name)
	}
	l, err := readManifest(manifest)
	if err != nil || slices.Contains(l.Files, name) {
		return l, err
	}
	if l, err = unlisted(dir, name); err == nil {
		l.guess.state = "does not list " + name
	}
	return l, err
}

// unlisted finds a log without its manifest: the newest base, and the increments with its number and greater ones. Those
// with smaller numbers are in the base. name is one of its files, or "".
func unlisted(dir, name string) (*Log, error) {
	entries, err := disk.ReadDir(dir)
	var of string
	var base *part
	var increments []*part
	if p := parsePart(name); p != nil {
		of = p.log
		if p.base {
			base = p
		}
	}
	for _, e := range entries {
		p := parsePart(e.Name())
		switch {
		case p == nil || name != "" && p.log != of:
		case of != "" && p.log != of:
			return nil, fmt.Errorf("%s: has files of several logs and no manifest, %s and %s: name one", dir, of, p.log)
		case !p.base:
			of, increments = p.log, append(increments, p)
		case base == nil || base.seq < p.seq && base.name != name:
			of, base = p.log, p
		default:
			of = p.log
		}
	}
	if err != nil || of == "" {
		return nil, cmp.Or(err, ErrNotLog)
	}
	slices.SortFunc(increments, func(x, y *part) int { return cmp.Compare(x.seq, y.seq) })
	g := &guess{manifest: disk.Join(dir, of+manifestSuffix), state: "is missing", named: name != ""}
	var files []string
	if base != nil {
		files = []string{base.name}
		increments = slices.DeleteFunc(increments, func(p *part) bool { return p.seq < base.seq })
	} else {
		g.missing = "the base"
	}
	for i, p := range increments {
		files = append(files, p.name)
		if i > 0 && p.seq != increments[i-1].seq+1 && g.missing == "" {
			g.missing = fmt.Sprintf("increment %d", increments[i-1].seq+1)
		}
	}
	g.found, g.backup = strings.Join(files, ", "), base != nil && len(increments) == 0
	if g.backup && filepath.Base(dir) == logDir { // of a server, which has an increment with each base
		g.backup, g.missing = false, "the increments"
	}
	l, err := newLog(dir, files)
	if err == nil {
		l.guess, l.parts = g, true
	}
	return l, err
}
