package dataset

import (
	"errors"
	"fmt"
	"testing"

	"kvferry/record"
)

func TestKinds(t *testing.T) {
	short := record.Short(3, "klen", 4, 2)
	for _, c := range []struct {
		err        error
		key, value string
	}{
		{short, FindBadKeyLength, FindShortValue},
		{fmt.Errorf("row: %w", short), FindBadKeyLength, FindShortValue},
		{record.Short(0, "score", 8, 0), FindBadRowKey, FindShortValue},
		{errors.New("odd"), FindBadRowKey, FindBadValue},
	} {
		if k, v := KeyKind(c.err, "klen"), ValueKind(c.err); k != c.key || v != c.value {
			t.Errorf("%v: %s and %s", c.err, k, v)
		}
	}
}

func TestLimit(t *testing.T) {
	for deep, want := range map[bool]int{false: perRecord, true: 130} {
		l := Limit{Deep: deep}
		for range 2 { // records
			l.Begin()
			told := 0
			for i := range 130 {
				if reached := l.Reached(); l.Tell(fmt.Sprint("kind ", i)) == reached {
					t.Errorf("deep %v: finding %d is told %v", deep, i, reached)
				} else if !reached {
					told++
				}
			}
			if told != want {
				t.Errorf("deep %v: %d told, want %d", deep, told, want)
			}
			if l.More() == deep {
				t.Errorf("deep %v: more is %v", deep, l.More())
			}
			if deep {
				continue
			}
			if f := l.Rest(); f.Kind != "kind 129" || f.Severity != record.Error || f.Detail != "and 30 more findings about this record" {
				t.Errorf("the rest is %+v", f)
			}
			if l.More() {
				t.Error("the rest comes twice")
			}
		}
	}
}
