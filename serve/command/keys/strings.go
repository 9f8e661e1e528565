package keys

import (
	"errors"

	"kvferry/internal/shared/argument"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var stringCommands = command.Functions{
	"get": get, "mget": mget, "strlen": strlen, "getrange": getrange, "substr": getrange, "lcs": lcs,
}

func get(c *command.Call) error {
	return c.Text(c.Args[1], func(b []byte) error {
		c.Bulk(b)
		return nil
	})
}

// mget replies with null for keys of other types.
func mget(c *command.Call) error {
	return c.W.Aggregate(resp.Array, func() (int64, error) {
		for _, key := range c.Args[1:] {
			err := c.Text(key, func(b []byte) error {
				c.Bulk(b)
				return nil
			})
			if errors.Is(err, argument.ErrWrongType) {
				c.W.Null()
			} else if err != nil {
				return 0, err
			}
		}
		return int64(len(c.Args) - 1), nil
	})
}

func strlen(c *command.Call) error {
	return c.Text(c.Args[1], func(b []byte) error {
		c.W.Int(int64(len(b)))
		return nil
	})
}

func getrange(c *command.Call) error {
	ends, err := c.Ints(2, 2)
	if err != nil {
		return err
	}
	return c.Text(c.Args[1], func(b []byte) error {
		c.W.Bulk(substring(b, ends[0], ends[1]))
		return nil
	})
}

// substring has the quirk of Redis that an end before the first byte is the first byte.
func substring(b []byte, start, end int64) []byte {
	n := int64(len(b))
	if start < 0 && end < 0 && start > end {
		return nil
	}
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	if end = min(end, n-1); start > end {
		return nil
	}
	return b[start : end+1]
}

// maxLCS bounds the table of LCS, one cell for each pair of bytes.
const maxLCS = 4 << 20

// lcsOptions are those of LCS.
type lcsOptions struct {
	idx, length, withLen bool
	minLen               int64
}

func (o *lcsOptions) read(args [][]byte) (err error) {
	for i := 0; i < len(args) && err == nil; i++ {
		switch {
		case argument.Is(args[i], "IDX"):
			o.idx = true
		case argument.Is(args[i], "LEN"):
			o.length = true
		case argument.Is(args[i], "WITHMATCHLEN"):
			o.withLen = true
		case argument.Is(args[i], "MINMATCHLEN") && i+1 < len(args):
			i++
			o.minLen, err = argument.ParseInt(args[i])
		default:
			err = argument.ErrSyntax
		}
	}
	if err == nil && o.idx && o.length {
		err = argument.Refuse("ERR If you want both the length and indexes, please just use IDX.")
	}
	return err
}

func lcs(c *command.Call) error {
	var o lcsOptions
	var two [2][]byte
	for i := range two {
		err := c.Text(c.Args[i+1], func(b []byte) error {
			if len(b) > maxLCS {
				return argument.Refuse("ERR kvferry compares strings of up to 4 MiB")
			}
			two[i] = append([]byte{}, b...)
			return nil
		})
		if errors.Is(err, argument.ErrWrongType) {
			err = argument.Refuse("ERR The specified keys must contain string values")
		}
		if err != nil {
			return err
		}
	}
	if err := o.read(c.Args[3:]); err != nil {
		return err
	}
	if int64(len(two[0])+1)*int64(len(two[1])+1) > maxLCS {
		return argument.Refuse("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	}
	size := 4 * int64(len(two[0])+1) * int64(len(two[1])+1)
	free, err := c.TakeMemory(size)
	if err != nil {
		return err
	}
	defer free()
	return replyLCS(c, two[0], two[1], &o)
}

// replyLCS replies with the common subsequence of two strings.
func replyLCS(c *command.Call, a, b []byte, o *lcsOptions) error {
	seq, runs := commonSubsequence(a, b)
	if o.length {
		c.W.Int(int64(len(seq)))
		return nil
	}
	if !o.idx {
		c.W.Bulk(seq)
		return nil
	}
	return lcsMatches(c, runs, int64(len(seq)), o)
}

func lcsMatches(c *command.Call, matches []commonRun, total int64, o *lcsOptions) error {
	c.W.Header(resp.Map, 2)
	c.W.BulkString("matches")
	err := c.W.Aggregate(resp.Array, func() (n int64, err error) {
		for _, m := range matches {
			if m.Len < o.minLen {
				continue
			}
			n++
			size := int64(2)
			if o.withLen {
				size++
			}
			c.W.Header(resp.Array, size)
			for _, end := range []int64{m.A, m.B} {
				c.W.List(end-m.Len+1, end)
			}
			if o.withLen {
				c.W.Int(m.Len)
			}
		}
		return n, nil
	})
	c.W.BulkString("len")
	c.W.Int(total)
	return err
}
