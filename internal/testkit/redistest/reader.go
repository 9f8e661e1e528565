package redistest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"kvferry/record"
)

// Read reads records in the form of Records, without those that have expired and fields that have.
func Read(t testing.TB, into map[string]string, reader record.Reader) {
	t.Helper()
	r := record.Walk(reader)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Expired {
			continue
		}
		id, typ, expire := h.DB+"/"+string(h.Key), h.Type, h.ExpireMS
		list := elements(t, r, h)
		if len(list) > 0 {
			into[id] = Form(typ.String(), expire, list)
		}
	}
}

func elements(t testing.TB, r *record.Walker, h *record.Header) []string {
	typ := h.Type
	var last string
	if typ == record.Stream {
		last = streamLine(h)
	}
	var out, groups []string
	batch := make([]record.Element, 7)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch[:n] {
			if line, ok := groupLine(t, &batch[i]); ok {
				groups = append(groups, line)
				continue
			}
			if ms := batch[i].ExpireMS; ms == 0 || ms > time.Now().UnixMilli() {
				out = append(out, element(t, typ, &batch[i]))
			}
		}
	}
	switch typ {
	case record.Set, record.Hash, record.ZSet:
		slices.Sort(out)
	case record.Stream:
		out = append(append(out, last), sortGroups(groups)...)
	}
	return out
}

func element(t testing.TB, typ record.Type, e *record.Element) string {
	switch typ {
	case record.Hash:
		text := string(e.Name) + "=" + string(e.Value)
		if e.ExpireMS != 0 {
			text += fmt.Sprintf("@%d", e.ExpireMS)
		}
		return text
	case record.Set:
		return string(e.Name)
	case record.ZSet:
		return string(e.Name) + "=" + Score(strconv.FormatFloat(e.Score, 'g', -1, 64))
	case record.Stream:
		return entryLine(t, e)
	}
	return string(e.Value)
}

func entryLine(t testing.TB, e *record.Element) string {
	var pairs []string
	for packed := e.Value; len(packed) > 0; {
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			t.Fatal(err)
		}
		pairs, packed = append(pairs, string(field), string(value)), rest
	}
	return Entry(ID(e.Name), pairs)
}

// Diff lists up to most differences between two sets of records.
func Diff(want, got map[string]string, most int) []string {
	var out []string
	all := map[string]string{}
	maps.Copy(all, want)
	maps.Copy(all, got)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if want[k] != got[k] && len(out) < most {
			out = append(out, fmt.Sprintf("%q\n\twant %.600s\n\tgot  %.600s", k, want[k], got[k]))
		}
	}
	return out
}

// streamLine formats the header of a stream.
func streamLine(h *record.Header) string {
	deleted := "0-0"
	if h.MaxDeleted != nil {
		deleted = ID(h.MaxDeleted)
	}
	return fmt.Sprintf("last=%s deleted=%s added=%d", ID(h.Last), deleted, int64(h.Added)) // as servers print it
}

// groupLine formats an element of a consumer group. It returns false for other elements.
func groupLine(t testing.TB, e *record.Element) (string, bool) {
	var line string
	var err error
	switch e.Kind {
	case record.Group:
		var g record.GroupState
		g, err = record.DecodeGroup(e.Value)
		line = fmt.Sprintf("group %s last=%s read=%d", e.Name, ID(g.Last), g.Read)
	case record.Consumer:
		var c record.ConsumerState
		c, err = record.DecodeConsumer(e.Value)
		line = fmt.Sprintf("consumer %s", c.Name)
	case record.Pending:
		var p record.PendingEntry
		p, err = record.DecodePending(e.Value)
		line = fmt.Sprintf("pending %s %s %d", ID(p.ID), p.Consumer, p.Count)
	}
	if err != nil {
		t.Fatal(err)
	}
	return line, line != ""
}
