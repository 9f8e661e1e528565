package render

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"kvferry/inspect"
	"kvferry/internal/visible"
)

// page is the page that HTML writes, with a marker where the data belongs.
//
//go:embed page.html
var page string

const pageMarker = "{{DATA}}"

// HTML writes a page about what is in a dataset. It needs nothing but itself: no network, no other
// file.
func HTML(w io.Writer, source string, s *inspect.Stats) error {
	before, after, ok := strings.Cut(page, pageMarker)
	if !ok {
		return fmt.Errorf("the page has no place for data")
	}
	// json.Marshal escapes <, > and &, so that no key ends the script element.
	data, err := json.Marshal(struct {
		Source string     `json:"source"`
		Stats  *jsonStats `json:"stats"`
	}{source, newJSONStats(s)})
	if err != nil {
		return err
	}
	for _, part := range []string{before, string(visible.JSON(data)), after} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}
