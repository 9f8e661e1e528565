package docs

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPages(t *testing.T) {
	topics := Topics()
	for _, want := range []string{"findings", "filters", "formats/nemo"} {
		if !slices.Contains(topics, want) {
			t.Errorf("no page %s among %q", want, topics)
		}
	}
	for _, topic := range append(topics, "nemo") {
		if text, ok := Page(topic); !ok || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s: %.40q", topic, text)
		}
	}
	if _, ok := Page("nothing"); ok {
		t.Error("a page that is not there")
	}
}

// Lines of prose have at most 100 characters: pages are read in terminals too, by kvferry help.
func TestLinesOfProse(t *testing.T) {
	for _, topic := range Topics() {
		text, _ := Page(topic)
		code := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if n := utf8.RuneCountInString(line); n > 100 && !code && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s.md:%d: %d characters", topic, i+1, n)
			}
		}
	}
}
