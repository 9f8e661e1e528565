package syntax

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// row is the form of a row: name, arity, places, access, flags, versions, group and summary.
var row = regexp.MustCompile(`^[a-z_.-]+(\|[a-z-]+)? -?\d+(/-?\d+)? \d+ -?\d+ \d+ (\d|-1) (-|[.ruw]{1,2}!?) (-|[a-z_,]+) (-|(-|[\d.]+)(/[\d.]+)?) (-|[a-z-]+)( \S.*)?$`)

// TestTable: each row has all columns, and stands in the order of names.
func TestTable(t *testing.T) {
	before := ""
	for i, line := range strings.Split(strings.TrimSuffix(table, "\n"), "\n")[1:] {
		name, _, _ := strings.Cut(line, " ")
		if !row.MatchString(line) || name <= before {
			t.Errorf("row %d: %s", i, line)
		}
		before = name
	}
	for name, c := range Commands() {
		outer, _, is := strings.Cut(name, "|")
		if is && Commands()[outer] == nil || (c.First > 0) != (c.Step > 0) || c.Log == "" && c.Group == "" && c.Since != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestKeys: keys stand at fixed places, after their number, or after STREAMS.
func TestKeys(t *testing.T) {
	for line, want := range map[string]string{
		"get a": "[a] [] true", "mset a 1 b 2": "[a b] [] true", "blpop a b 0": "[a b] [] true", "bitop or d a b": "[d a b] [] true",
		"zunionstore d 2 a b weights": "[d] [a b] true", "zunionstore d 3 a b": "[d] [a b] false", "zunion -1 a": "[] [] false", "lmpop x a": "[] [] false",
		"xread count 1 streams a b 0 0": "[] [a b] true", "xread count 1": "[] [] true", "ping": "[] [] true", "eval x": "[] [] true", "copy a b db 1": "[a b] [] true",
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		fixed, counted, whole := Commands()[string(args[0])].Keys(args)
		if got := fmt.Sprintf("%s %s %t", fixed, counted, whole); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
