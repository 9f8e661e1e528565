package commands

import (
	"errors"
	"strings"
	"testing"

	"kvferry/internal/shared/argument"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/servertest"
	"kvferry/redis/state"
)

// doStreams runs a command, including some of other packages that tests need.
func doStreams(s *state.Server, a [][]byte) error {
	if string(a[0]) == "SET" {
		s.DB.SetString(a[1], a[2], 0)
		return nil
	}
	if string(a[0]) == "XGROUP" {
		return cmdXgroup(map[string]groupCommand{"CREATE": groupCreate, "SETID": groupMove, "DESTROY": groupDestroy, "CREATECONSUMER": groupCreateConsumer,
			"DELCONSUMER": groupDeleteConsumer}[string(a[1])])(s, a)
	}
	return map[string]func(*state.Server, [][]byte) error{
		"XADD": cmdXadd, "XTRIM": cmdXtrim, "XDEL": cmdXdel, "XDELEX": cmdXdelex, "XACKDEL": cmdXackdel, "XSETID": cmdXsetid, "XACK": cmdXack, "XCLAIM": cmdXclaim,
	}[string(a[0])](s, a)
}

func madeStreams(t *testing.T, lines string) *state.Server {
	return servertest.Made(t, doStreams, lines)
}

const someStreams = "SET s v\nXADD x 1-1 f v\nXGROUP CREATE x g 0"

// TestStreamsRefused: commands that a server refuses, and commands of unknown effect, change no keys.
func TestStreamsRefused(t *testing.T) {
	s := madeStreams(t, someStreams)
	const wrongType, syntax, integer, args, groupKey, unknown = "WRONGTYPE", "syntax error", "not an integer", "wrong number", "requires the key to exist", "is unknown"
	for line, want := range map[string]string{
		"XADD x 1-1 f v": "equal or smaller", "XADD x 0-0 f v": "", "XADD x 2-1 f": args, "XADD x": args, "XADD s 2-1 f v": wrongType, "XADD x 1-x f v": "Invalid stream ID", "XADD x MAXLEN x 2-1 f v": integer,
		"XTRIM x MAXLEN x": integer, "XTRIM x WHAT 1": "this option", "XTRIM s MAXLEN 1": wrongType, "XDEL x z": "Invalid stream ID", "XDEL s 1-1": wrongType, "XSETID x z": "Invalid stream ID", "XSETID no 1-1": "no such key",
		"XSETID s 1-1": wrongType, "XSETID x 0-1": "smaller", "XACK x g z": "Invalid stream ID", "XACK s g 1-1": wrongType,
		"XGROUP CREATE s g 0": wrongType, "XGROUP CREATE no g 0": groupKey, "XGROUP CREATE x g 0": "BUSYGROUP", "XGROUP CREATE x k z": "Invalid stream ID",
		"XGROUP CREATE x k 0 ENTRIESREAD x": "ENTRIESREAD must be", "XGROUP SETID x no 0": "NOGROUP", "XGROUP SETID x g z": "Invalid stream ID", "XGROUP CREATECONSUMER x no c": "NOGROUP", "XGROUP DELCONSUMER x no c": "NOGROUP",
		"XCLAIM x no c 0 1-1": "NOGROUP", "XCLAIM s g c 0 1-1": wrongType, "XCLAIM x g c x 1-1": "min-idle-time", "XCLAIM x g c 0 z": "", "XCLAIM x g c 0 1-1 TIME x": integer, "XCLAIM x g c 0 1-1 WHAT": "",

		"XADD x * f v": unknown, "XADD x MAXLEN ~ 1 9-1 f v": unknown, "XTRIM x MINID ~ 9": unknown, "XTRIM x LIMIT 1": syntax, "XTRIM x MAXLEN 1 MINID 2": syntax, "XADD x LIMIT 1 9-1 f v": syntax, "XADD x MAXLEN 1 LIMIT -1 9-1 f v": "LIMIT", "XDELEX x NO 1 1-1": "this option", "XDELEX x IDS 2 1-1": "numids", "XACKDEL x g IDS 1 z": "Invalid stream ID", "XDELEX s IDS 1 1-1": wrongType, "XADD x MAXLEN": args, "XADD x IDMP p i": args, "XADD x MAXLEN -1 9-1 f v": "must be >= 0", "XTRIM x MAXLEN 0 ACKED KEEPREF": syntax,
		"XSETID x 9-1 WHAT 1": "this option", "XSETID x 9-1 ENTRIESADDED": syntax, "XSETID x 9-1 ENTRIESADDED -1": integer, "XSETID x 9-1 MAXDELETEDID 9-2": "Invalid stream ID", "XSETID x 9-1 ENTRIESADDED 0": "smaller",
		"XGROUP CREATE x k 0 WHAT 1": "this option", "XCLAIM x g c 0 1-1 IDLE": syntax,
	} {
		err := doStreams(s, servertest.Words(line))
		var reply *argument.ReplyError
		var no *state.UnsupportedError
		if !errors.As(err, &reply) && !errors.As(err, &no) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, d := range redistest.Diff(servertest.Contents(t, madeStreams(t, someStreams)), servertest.Contents(t, s), 9) {
		t.Error("changed: " + d)
	}
}

// entry is redistest's form of an entry whose field f is v.
func entry(id string) string { return redistest.Entry(id, []string{"f", "v"}) }

// pending makes a stream of 5 entries; a group has read 4 of them and acknowledged the last of these.
const pending = "XADD x 1-1 f v\nXADD x 2-1 f v\nXADD x 3-1 f v\nXADD x 4-1 f v\nXADD x 5-1 f v\nXGROUP CREATE x g 4-1\nXCLAIM x g a 0 1-1 2-1 3-1 FORCE JUSTID TIME 1 RETRYCOUNT 1\n"

// TestStreamsDone runs commands and compares the keys.
func TestStreamsDone(t *testing.T) {
	for _, c := range []struct {
		lines string
		want  []string // of the stream x
	}{
		{"XADD x NOMKSTREAM 1-1 f v\nXDEL x 1-1\nXTRIM x MAXLEN 1\nXACK x g 1-1", nil},
		{"XADD x 1 f v\nXADD x NOMKSTREAM 2-1 f v g w\nXADD x KEEPREF 3-3 f v\nXDEL x 2-1 9-9", []string{entry("1-0"), entry("3-3"), "last=3-3 deleted=2-1 added=3"}},
		{"XADD x 1-1 f v\nXADD x 2-1 f v\nXADD x 3-1 f v\nXADD x MAXLEN = 3 4-1 f v\nXTRIM x MINID 3\nXTRIM x MAXLEN 1 KEEPREF", []string{entry("4-1"), "last=4-1 deleted=0-0 added=4"}},
		{"XADD x 1-1 f v\nXDEL x 1-1\nXSETID x 9-1 ENTRIESADDED 7 MAXDELETEDID 8-1\nXSETID x 5-5", []string{"last=5-5 deleted=8-1 added=7"}},
		{"XGROUP CREATE x g $ MKSTREAM\nXADD x 1-1 f v\nXADD x 2-1 f v\nXGROUP CREATE x h 1 ENTRIESREAD 1\nXGROUP SETID x g $ ENTRIESREAD 2\nXGROUP CREATE x gone 0\nXGROUP DESTROY x gone\n" +
			"XGROUP CREATECONSUMER x g a\nXGROUP CREATECONSUMER x g a\nXGROUP CREATECONSUMER x h b\n" +
			"XCLAIM x g a 0 1-1 FORCE JUSTID LASTID 5-1\nXCLAIM x g a 0 2-1 FORCE RETRYCOUNT 7\nXCLAIM x g a 0 1-1\nXCLAIM x g b 99 1-1\nXCLAIM x g a 0 9-1 FORCE\nXCLAIM x h b 0 1-1 2-1 IDLE 5 FORCE\nXACK x h 2-1",
			[]string{entry("1-1"), entry("2-1"), "last=2-1 deleted=0-0 added=2", "group g last=5-1 read=2", "consumer a", "pending 1-1 a 2", "pending 2-1 a 7", "group h last=1-0 read=1", "consumer b", "pending 1-1 b 2"}},
		{"XADD x 1-1 f v\nXADD x LIMIT 5 MAXLEN ~ 9 +2-01 f v\nXTRIM x MINID ~ 1 LIMIT 1\nXADD x IDMP p i 3-1 f v\nXADD x IDMP p i * f v\nXADD x IDMPAUTO p 4-1 f v\nXADD x IDMPAUTO p * f v\nXADD no NOMKSTREAM 1-1 f v\nXDEL no z",
			[]string{entry("1-1"), entry("2-1"), entry("3-1"), entry("4-1"), "last=4-1 deleted=0-0 added=4"}},
		{pending + "XDELEX x IDS 1 1-1\nXDELEX no IDS 1 z\nXDELEX x DELREF IDS 2 2-1 9-9\nXDELEX x ACKED IDS 3 3-1 4-1 5-1", // 3 is pending, 5 is not read
			[]string{entry("3-1"), entry("5-1"), "last=5-1 deleted=4-1 added=5", "group g last=4-1 read=-1", "consumer a", "pending 1-1 a 1", "pending 3-1 a 1"}},
		{pending + "XACKDEL x g IDS 1 1-1\nXACKDEL x none IDS 1 z\nXACKDEL x g DELREF IDS 2 2-1 4-1\nXACKDEL x g ACKED IDS 1 3-1",
			[]string{entry("4-1"), entry("5-1"), "last=5-1 deleted=3-1 added=5", "group g last=4-1 read=-1", "consumer a"}},
		{pending + "XTRIM x MAXLEN 1 ACKED", []string{entry("1-1"), entry("2-1"), entry("3-1"), entry("5-1"), "last=5-1 deleted=0-0 added=5", "group g last=4-1 read=-1", "consumer a", "pending 1-1 a 1", "pending 2-1 a 1", "pending 3-1 a 1"}},
		{pending + "XADD x DELREF MINID 3 6-1 f v", []string{entry("3-1"), entry("4-1"), entry("5-1"), entry("6-1"), "last=6-1 deleted=0-0 added=6", "group g last=4-1 read=-1", "consumer a", "pending 3-1 a 1"}},
		{"XADD x 1-1 f v\nXGROUP CREATE x g 0 MKSTREAM ENTRIESREAD 1\nXCLAIM x g a 0 1-1 FORCE TIME 1\nXCLAIM x g b 0 1-1 TIME 1\nXGROUP DELCONSUMER x g a\nXGROUP CREATECONSUMER x g c\nXDEL x 1-1\nXCLAIM x g c 0 1-1",
			[]string{"last=1-1 deleted=1-1 added=1", "group g last=0-0 read=1", "consumer b", "consumer c"}},
	} {
		want := map[string]string{}
		if c.want != nil {
			want["0/x"] = redistest.Form("stream", 0, c.want)
		}
		for _, d := range redistest.Diff(want, servertest.Contents(t, madeStreams(t, c.lines)), 9) {
			t.Errorf("%s:\n%s", c.lines, d)
		}
	}
}
