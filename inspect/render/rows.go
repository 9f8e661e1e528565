package render

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/inspect/dump"
	"kvferry/internal/text/escape"
)

// RawRows prints physical rows as JSON lines.
type RawRows struct{ out *bufio.Writer }

// NewRawRows returns a printer of rows.
func NewRawRows(w io.Writer) *RawRows { return &RawRows{bufio.NewWriterSize(w, 256<<10)} }

// Row prints one row.
func (p *RawRows) Row(r *dump.Row) error {
	out := newJSONRow(r.DB, r.Keyspace, r.Row.Type, &r.Row, r.Key, r.Value)
	if r.Place.File != "" {
		out.Place = &r.Place
	}
	b, err := marshal(out)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(b, '\n'))
	return err
}

// Finish flushes the output.
func (p *RawRows) Finish() error { return p.out.Flush() }

// hexWidth is the number of bytes in a line of annotated bytes.
const hexWidth = 16

// HexRows prints physical rows as annotated bytes:
//
//	# database 0, hash: hash meta, 000010.sst at 0, level 0, seq 7
//	key
//	  0000  48                                               kind = "H"
//	  0001  757365723a31                                     key = "user:1"
type HexRows struct{ out *bufio.Writer }

// NewHexRows returns a printer of rows.
func NewHexRows(w io.Writer) *HexRows { return &HexRows{bufio.NewWriterSize(w, 256<<10)} }

// Row prints one row.
func (p *HexRows) Row(r *dump.Row) error {
	fmt.Fprintf(p.out, "# database %s, %s: %s, %s, seq %d\n", escape.Text(r.DB), escape.Text(r.Keyspace), r.Row.Kind,
		escape.Text(placeText(r.Place)), r.Place.Seq)
	if r.Row.Err != nil {
		fmt.Fprintf(p.out, "# malformed: %s\n", escape.Text(r.Row.Err.Error()))
	}
	p.part("key", r.Key, r.Row.Fields)
	p.part("value", r.Value, r.Row.Fields)
	_, err := p.out.WriteString("\n")
	return err
}

// part prints the key or the value, field by field. Bytes between fields have no name; bytes after the last are
// marked "?".
func (p *HexRows) part(where string, b []byte, fields []format.Field) {
	fmt.Fprintln(p.out, where)
	at := 0
	for _, f := range fields {
		if f.Where != where || f.Off < at || f.Off+f.Len > len(b) {
			continue
		}
		p.bytes(b[at:f.Off], at, "")
		p.bytes(b[f.Off:f.Off+f.Len], f.Off, f.Name+" = "+valueOf(f.Value))
		at = f.Off + f.Len
	}
	p.bytes(b[at:], at, "?")
}

// bytes prints b with a name next to the first line. A field without bytes gets a line, too.
func (p *HexRows) bytes(b []byte, off int, name string) {
	if len(b) == 0 && (name == "" || name == "?") {
		return
	}
	for first := true; first || len(b) > 0; first = false {
		n := min(hexWidth, len(b))
		if !first {
			name = ""
		}
		line := fmt.Sprintf("  %04x  %-*s  %s", off, 2*hexWidth, hex.EncodeToString(b[:n]), name)
		for len(line) > 0 && line[len(line)-1] == ' ' {
			line = line[:len(line)-1]
		}
		fmt.Fprintln(p.out, line)
		b, off = b[n:], off+n
	}
}

// Finish flushes the output.
func (p *HexRows) Finish() error { return p.out.Flush() }
