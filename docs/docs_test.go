package docs

import (
	"slices"
	"strings"
	"testing"
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
