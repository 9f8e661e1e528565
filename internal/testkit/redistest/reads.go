package redistest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strconv"
	"strings"
)

// Reads are reading commands in the form of Patterns, for a server that has the keys of Patterns.
var Reads = strings.Split(strings.TrimSpace(`
GET S|MGET S S H|STRLEN S|GETRANGE S I I|GETRANGE S B I|SUBSTR S I N|LCS S S|LCS S S LEN|LCS S S IDX|LCS S S IDX MINMATCHLEN N WITHMATCHLEN|GET K
GETBIT S B|GETBIT S O|BITCOUNT S|BITCOUNT S I I|BITCOUNT S I I BIT|BITCOUNT S I I BYTE|BITPOS S 0|BITPOS S 1|BITPOS S 1 I|BITPOS S 0 I I|BITPOS S 1 I I BIT|BITPOS S 0 B I BIT|BITFIELD_RO S GET u8 B GET i5 #N|BITFIELD_RO S GET i64 I GET u63 O
HGET H F|HMGET H F F F|HGETALL H|HKEYS H|HVALS H|HLEN H|HEXISTS H F|HSTRLEN H F|HGETALL K|HSCAN H 0 COUNT 1000|HSCAN H 0 MATCH f* COUNT 1000|HRANDFIELD H 0
LLEN L|LRANGE L I I|LRANGE L 0 -1|LINDEX L I|LPOS L V|LPOS L V RANK I|LPOS L V RANK -1 COUNT 0|LPOS L V COUNT N MAXLEN N|LPOS L V RANK I COUNT N MAXLEN N|LRANGE K I I
SCARD T|SISMEMBER T M|SMISMEMBER T M M M|SMEMBERS T|SINTER T T|SINTER T T T|SUNION T T|SUNION T T T|SDIFF T T|SDIFF T T T|SINTERCARD 2 T T|SINTERCARD 2 T T LIMIT N|SSCAN T 0 COUNT 1000|SSCAN T 0 MATCH [a-c] COUNT 1000|SINTER T K|SRANDMEMBER T 0
ZCARD Z|ZSCORE Z M|ZMSCORE Z M M M|ZRANK Z M|ZREVRANK Z M|ZCOUNT Z R R|ZLEXCOUNT Z Y Y|ZRANGE Z I I|ZRANGE Z 0 -1 WITHSCORES|ZRANGE Z I I REV|ZRANGE Z I I REV WITHSCORES|ZRANGE Z R R BYSCORE|ZRANGE Z R R BYSCORE WITHSCORES LIMIT I N|ZRANGE Z R R BYSCORE REV LIMIT N I
ZREVRANGE Z I I|ZREVRANGE Z I I WITHSCORES|ZRANGEBYSCORE Z R R|ZRANGEBYSCORE Z R R WITHSCORES LIMIT N N|ZREVRANGEBYSCORE Z R R|ZREVRANGEBYSCORE Z R R LIMIT I I WITHSCORES|ZRANGE K I I|ZSCORE K M|ZRANK K M|ZSCAN Z 0 COUNT 1000|ZSCAN Z 0 MATCH [0-9]* COUNT 1000|ZRANDMEMBER Z 0
ZRANGEBYLEX @ Y Y|ZREVRANGEBYLEX @ Y Y|ZRANGE @ Y Y BYLEX|ZRANGE @ Y Y BYLEX REV LIMIT N I|ZRANGEBYLEX @ Y Y LIMIT I N|ZLEXCOUNT @ Y Y
ZINTER 2 Z Z|ZINTER 2 Z Z WITHSCORES|ZINTER 3 Z T Z WEIGHTS 1 2 C AGGREGATE MAX WITHSCORES|ZUNION 2 Z T WITHSCORES|ZUNION 3 Z Z Z AGGREGATE MIN|ZUNION 2 Z Z WEIGHTS C C WITHSCORES|ZDIFF 2 Z Z WITHSCORES|ZDIFF 3 Z T Z|ZINTERCARD 2 Z Z|ZINTERCARD 2 Z T LIMIT N
XLEN X|XRANGE X - +|XRANGE X E E|XRANGE X (E +|XRANGE X E + COUNT N|XREVRANGE X + -|XREVRANGE X + E COUNT N|XREVRANGE X (E -|XREAD STREAMS X E|XREAD COUNT N STREAMS X X E 0|XREAD STREAMS X $|XREAD BLOCK 1 STREAMS X X 99-0 E|XRANGE K - +|XRANGE X - + COUNT 0|XREAD STREAMS K 0
XINFO GROUPS X|XINFO STREAM X|XINFO STREAM X FULL|XINFO STREAM X FULL COUNT N|XPENDING X Q|XPENDING X Q - + N|XPENDING X Q E + N U|XINFO CONSUMERS X Q|XINFO STREAM K
EXISTS K|EXISTS K K K|TYPE K|EXPIRETIME K|PEXPIRETIME K|TOUCH K K|KEYS *|KEYS [s-z]?|DBSIZE|SELECT D|TYPE K|OBJECT FREQ K|OBJECT REFCOUNT K|SCAN 0 COUNT 10000
PFCOUNT P|PFCOUNT P P|PFCOUNT P P K
GET|FOO K K|SET S V|DEL K|ZADD Z 1 M|PING|PING V|ECHO V|SELECT 99|SELECT x|LCS S|SCAN x|SCAN 0 COUNT 0|CLIENT FOO|CONFIG|OBJECT|COMMAND FOO|ZRANGE Z 0|HELLO 5|AUTH x|AUTH a b|LASTSAVE x|CLIENT GETNAME|CLIENT SETNAME Q|SINTERCARD 0 T|ZUNION 0 Z|ZINTER 5 Z
`), "\n")

// Node is a reply: its kind is the first byte of its line.
type Node struct {
	Kind  byte
	Text  string
	Items []Node
}

// ReadNode reads a reply of either version of the protocol.
func ReadNode(in *bufio.Reader) (n Node, err error) {
	line, err := in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return n, fmt.Errorf("reply %q: %w", line, err)
	}
	n = Node{Kind: line[0], Text: line[1 : len(line)-2]}
	switch n.Kind {
	case '$', '=', '*', '~', '%', '>':
	default:
		return n, nil
	}
	size, err := strconv.Atoi(n.Text)
	if err != nil || size < 0 {
		return n, err
	}
	if n.Kind == '$' || n.Kind == '=' {
		b := make([]byte, size+2)
		_, err = io.ReadFull(in, b)
		n.Text = string(b[:size])
		return n, err
	}
	if n.Kind == '%' {
		size *= 2
	}
	for range size {
		item, err := ReadNode(in)
		if err != nil {
			return n, err
		}
		n.Items = append(n.Items, item)
	}
	return n, nil
}

// String shows a reply.
func (n Node) String() string {
	if n.Items == nil {
		return fmt.Sprintf("%c%q", n.Kind, n.Text)
	}
	return fmt.Sprintf("%c%s%v", n.Kind, n.Text, n.Items)
}

// Sort orders the elements of a reply, each of some items.
func (n *Node) Sort(each int) {
	if each < 1 || len(n.Items)%each != 0 {
		return
	}
	groups := slices.Collect(slices.Chunk(slices.Clone(n.Items), each))
	slices.SortStableFunc(groups, func(a, b []Node) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	n.Items = slices.Concat(groups...)
}

// ReadCommand makes a random reading command.
func ReadCommand(r *rand.Rand) []string { return Command(r, Reads) }
