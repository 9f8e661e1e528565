package record_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestOutcomes compares with testdata/outcomes.txt: decoding of intact and damaged stream elements, names of types,
// notes among losses, severities of findings.
func TestOutcomes(t *testing.T) {
	var got strings.Builder
	id := append(make([]byte, 15), 7)
	say := func(name string, b []byte, decode func([]byte) string) {
		fmt.Fprintf(&got, "%s %x: %s\n%s\n\n", name, b, decode(b), formattest.Damaged(b, decode))
	}
	say("group", record.AppendGroup(nil, &record.GroupState{Last: id, Read: 9}), func(b []byte) string {
		v, err := record.DecodeGroup(b)
		return fmt.Sprintf("%+v %v", v, err)
	})
	say("consumer", record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("alice"), SeenMS: 12, ActiveMS: -1}),
		func(b []byte) string {
			v, err := record.DecodeConsumer(b)
			return fmt.Sprintf("%+v %v", v, err)
		})
	for _, consumer := range [][]byte{nil, {}, []byte("bob")} {
		say("pending", record.AppendPending(nil, &record.PendingEntry{ID: id, Consumer: consumer, DeliveredMS: 99, Count: 4}),
			func(b []byte) string {
				v, err := record.DecodePending(b)
				return fmt.Sprintf("%+v %t %v", v, v.Consumer == nil, err)
			})
	}
	say("pairs", record.AppendPair(record.AppendPair(nil, []byte("f"), bytes.Repeat([]byte("v"), 130)), nil, []byte("w")),
		func(b []byte) string {
			var out string
			for len(b) > 0 {
				field, value, rest, err := record.DecodePair(b)
				out += fmt.Sprintf("%q %q %v ", field, value, err)
				if err != nil {
					break
				}
				b = rest
			}
			return out
		})
	for _, name := range []string{"", "hash", "Hash", "none", "other"} {
		typ, err := record.ParseType(name)
		fmt.Fprintf(&got, "type %q: %s %v\n", name, typ, err)
	}
	got.WriteString("\n")
	for _, l := range record.LossInfos() {
		fmt.Fprintf(&got, "loss %s of %s, a note: %t\n", l.Kind, l.Types, l.Note)
	}
	got.WriteString("\n")
	for _, k := range record.FindingKinds() {
		fmt.Fprintf(&got, "finding %s of %s: %s\n", k.Kind, k.Group, k.Severity)
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", got.String())
}

// TestNew checks that Digest.New is set exactly for data that version 1 of the fingerprint does not define, in any
// order.
func TestNew(t *testing.T) {
	small, large := make([]byte, 3), make([]byte, 100<<10)
	plain, big := record.Element{Name: []byte("a"), Value: small}, record.Element{Name: []byte("b"), Value: large}
	expiring, bigExpiring := plain, big
	expiring.ExpireMS, bigExpiring.ExpireMS = 7, 7
	group := record.Element{Kind: record.Group, Name: []byte("g"), Value: make([]byte, 24)}
	for _, c := range []struct {
		typ   record.Type
		elems []record.Element
		want  bool
	}{
		{record.Hash, []record.Element{plain, big}, false}, {record.Hash, []record.Element{expiring, plain}, true}, {record.Hash, []record.Element{plain, expiring}, true},
		{record.Hash, []record.Element{bigExpiring, big, plain}, true}, {record.Hash, []record.Element{big, bigExpiring}, true},
		{record.Stream, []record.Element{{Name: make([]byte, 16)}}, false}, {record.Stream, []record.Element{{Name: make([]byte, 16)}, group}, true},
		{record.Other, []record.Element{plain}, true},
	} {
		for _, atOnce := range []int{1, 3} {
			var h record.Hasher
			header := &record.Header{Type: c.typ, Key: []byte("k"), Last: make([]byte, 16)}
			h.Begin(header)
			for rest := c.elems; len(rest) > 0; rest = rest[min(atOnce, len(rest)):] {
				h.Elements(rest[:min(atOnce, len(rest))])
			}
			if d := h.End(header); d.New != c.want || d.Records != 1 {
				t.Errorf("%s of %d elements: %+v", c.typ, len(c.elems), d)
			}
		}
	}
}
