package blackwidow

import (
	"testing"

	"kvferry/format"
)

func TestFollows(t *testing.T) {
	for _, c := range []struct {
		server, source string
		want           bool
	}{{"", "nemo", true}, {"pika3", "nemo", true}, {"pika3.5", "nemo", false}, {"", "blackwidow", false}, {"", "ardb", false}} {
		var f format.Follower = blackwidowFormat{c.server}
		conditions, ok := f.Follows(c.source)
		if ok != c.want || ok != (len(conditions) > 0) {
			t.Errorf("%+v: %v %q", c, ok, conditions)
		}
	}
}
