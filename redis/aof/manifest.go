package aof

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvferry/record"
)

// Part is a file in a manifest.
type Part struct {
	Name string
	Seq  int64
	Kind byte // KindBase, KindIncr or KindHistory
}

// Kinds of files in a manifest.
const (
	KindBase    = 'b' // the initial state, as commands or an RDB file
	KindIncr    = 'i' // commands after the base
	KindHistory = 'h' // replaced by a rewrite; never loaded, and may be missing
)

// Manifest lists the files of a multi-part log, one per line, as pairs of words:
//
//	file appendonly.aof.2.base.rdb seq 2 type b
//	file appendonly.aof.2.incr.aof seq 2 type i startoffset 5859
//
// Words may be quoted as in redis.conf. Lines that start with # are comments; unknown words are skipped.
type Manifest struct {
	Parts []Part
}

// maxManifestLine is the longest line that servers read.
const maxManifestLine = 1023

// DecodeManifest parses a manifest as strictly as servers do: at most one base, incremental files in ascending order,
// names without a directory.
func DecodeManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	for off := 0; off < len(data); {
		line, rest, ended := bytes.Cut(data[off:], []byte("\n"))
		at := int64(off)
		off = len(data) - len(rest)
		if err := m.line(line, ended); err != nil {
			return nil, &record.CorruptError{Format: "aof", Off: at, Field: "manifest", Err: err}
		}
	}
	if len(m.Parts) == 0 {
		return nil, &record.CorruptError{Format: "aof", Off: record.NoOffset, Field: "manifest", Err: errors.New("names no file")}
	}
	return m, nil
}

// line parses one line; ended is true if it is terminated.
func (m *Manifest) line(line []byte, ended bool) error {
	switch {
	case len(line) > 0 && line[0] == '#':
		return nil
	case !ended || len(line) > maxManifestLine:
		return fmt.Errorf("a line has no end within %s bytes", record.Number(maxManifestLine))
	}
	words, err := splitWords(strings.Trim(string(line), " \t\r\n"))
	if err != nil {
		return err
	}
	if len(words) < 6 || len(words)%2 != 0 {
		return fmt.Errorf("%d words, want file, seq and type, each with its value", len(words))
	}
	var p Part
	for i := 0; i < len(words); i += 2 {
		if err := p.set(strings.ToLower(words[i]), words[i+1]); err != nil {
			return err
		}
	}
	return m.add(p)
}

// set handles one pair of words.
func (p *Part) set(name, value string) (err error) {
	switch name {
	case "file":
		if strings.ContainsAny(value, "/\\") {
			return fmt.Errorf("file %q is a path, want a name", value)
		}
		p.Name = value
	case "seq":
		if p.Seq, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("seq %q is not a number", value)
		}
	case "type":
		if value != "" {
			p.Kind = value[0]
		}
	}
	return nil
}

// add validates a file against the earlier files.
func (m *Manifest) add(p Part) error {
	if p.Name == "" || p.Seq == 0 || p.Kind == 0 {
		return errors.New("want file, seq (not 0) and type")
	}
	switch p.Kind {
	case KindBase:
		if slices.ContainsFunc(m.Parts, func(q Part) bool { return q.Kind == KindBase }) {
			return fmt.Errorf("%s: a second base file", p.Name)
		}
	case KindIncr:
		if slices.ContainsFunc(m.Parts, func(q Part) bool { return q.Kind == KindIncr && q.Seq >= p.Seq }) {
			return fmt.Errorf("%s: seq %d is not greater than the previous one", p.Name, p.Seq)
		}
	case KindHistory:
	default:
		return fmt.Errorf("%s: type %q, want b, h or i", p.Name, p.Kind)
	}
	m.Parts = append(m.Parts, p)
	return nil
}

// Loaded lists the files to load, in order: the base, then every incremental file.
func (m *Manifest) Loaded() []Part {
	var out []Part
	for _, kind := range []byte{KindBase, KindIncr} {
		for _, p := range m.Parts {
			if p.Kind == kind {
				out = append(out, p)
			}
		}
	}
	return out
}

// Append appends the manifest in the servers' form.
func (m *Manifest) Append(dst []byte) []byte {
	for _, p := range m.Parts {
		dst = fmt.Appendf(dst, "file %s seq %d type %c\n", quoteWord(p.Name), p.Seq, p.Kind)
	}
	return dst
}

// splitWords splits a line like redis.conf: words between blanks, "…" with escapes (\n \r \t \b \a \xHH; any other byte
// stands for itself), '…' with only \'. A quote ends its word.
func splitWords(line string) ([]string, error) {
	var out []string
	for {
		line = strings.TrimLeft(line, " \t\n\v\f\r")
		if line == "" {
			return out, nil
		}
		word, rest, err := nextWord(line)
		if err != nil {
			return nil, err
		}
		out, line = append(out, word), rest
	}
}

// errQuote reports unbalanced or misplaced quotes.
var errQuote = errors.New("a quote is not closed, or closed within a word")

func nextWord(line string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0 || c == 0:
			return b.String(), line[i+1:], nil
		case c == '"' || c == '\'':
			n, err := quoted(&b, line[i:], c)
			if err != nil {
				return "", "", err
			}
			return b.String(), line[i+n:], nil
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), "", nil
}

// quoted appends a quoted text and returns its length with the quotes.
func quoted(b *strings.Builder, s string, quote byte) (int, error) {
	for i := 1; i < len(s); {
		if s[i] == quote {
			if i+1 < len(s) && strings.IndexByte(" \t\n\v\f\r", s[i+1]) < 0 {
				return 0, errQuote
			}
			return i + 1, nil
		}
		n := 1
		if s[i] == '\\' && i+1 < len(s) && (quote == '"' || s[i+1] == '\'') {
			n = escaped(b, s[i+1:], quote)
		} else {
			b.WriteByte(s[i])
		}
		i += n
	}
	return 0, errQuote
}

// escaped appends an escaped byte and returns the length of the escape with its backslash.
func escaped(b *strings.Builder, s string, quote byte) int {
	if quote == '\'' {
		b.WriteByte('\'')
		return 2
	}
	if s[0] == 'x' && len(s) >= 3 {
		if v, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			b.WriteByte(byte(v))
			return 4
		}
	}
	if i := strings.IndexByte("nrtba", s[0]); i >= 0 {
		b.WriteByte("\n\r\t\b\a"[i])
	} else {
		b.WriteByte(s[0])
	}
	return 2
}

// quoteWord quotes a name if necessary.
func quoteWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n\v\f\"'\\") && strconv.Quote(s) == `"`+s+`"` {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
