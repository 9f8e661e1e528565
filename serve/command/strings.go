package command

import (
	"errors"

	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

func stringCommands() []Command {
	return []Command{
		{"get", 2, "readonly fast", 1, 1, 1, get},
		{"mget", -2, "readonly fast", 1, -1, 1, mget},
		{"strlen", 2, "readonly fast", 1, 1, 1, strlen},
		{"getrange", 4, "readonly", 1, 1, 1, getrange},
		{"substr", 4, "readonly", 1, 1, 1, getrange},
		{"lcs", -3, "readonly", 1, 2, 1, lcs},
	}
}

func get(c *Call) error {
	return c.text(c.Args[1], func(b []byte) error {
		c.bulk(b)
		return nil
	})
}

// bulk writes a string that may be missing.
func (c *Call) bulk(b []byte) {
	if b == nil {
		c.W.Null()
	} else {
		c.W.Bulk(b)
	}
}

// mget replies with null for keys of other types.
func mget(c *Call) error {
	return c.W.Aggregate(resp.Array, func() (int64, error) {
		for _, key := range c.Args[1:] {
			err := c.text(key, func(b []byte) error {
				c.bulk(b)
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

func strlen(c *Call) error {
	return c.text(c.Args[1], func(b []byte) error {
		c.W.Int(int64(len(b)))
		return nil
	})
}

func getrange(c *Call) error {
	ends, err := c.ints(2, 2)
	if err != nil {
		return err
	}
	return c.text(c.Args[1], func(b []byte) error {
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

func lcs(c *Call) error {
	var o lcsOptions
	var two [2][]byte
	for i := range two {
		err := c.text(c.Args[i+1], func(b []byte) error {
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
	if err := c.Server.gate.row(c.Ctx, size); err != nil {
		return err
	}
	defer c.Server.gate.free(c.Client, 0, size)
	return c.lcs(two[0], two[1], &o)
}

// lcs fills the table and walks back through it.
func (c *Call) lcs(a, b []byte, o *lcsOptions) error {
	width := len(b) + 1
	table := make([]uint32, (len(a)+1)*width)
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				table[i*width+j] = table[(i-1)*width+j-1] + 1
			} else {
				table[i*width+j] = max(table[(i-1)*width+j], table[i*width+j-1])
			}
		}
	}
	total := table[len(table)-1]
	if o.length {
		c.W.Int(int64(total))
		return nil
	}
	text, matches := backwards(a, b, table)
	if !o.idx {
		c.W.Bulk(text)
		return nil
	}
	return c.lcsMatches(matches, int64(total), o)
}

// match is a common substring: its ends in both strings.
type match struct{ a, b, n int64 }

// backwards returns the common subsequence, and its runs from the last one.
func backwards(a, b []byte, table []uint32) (text []byte, out []match) {
	width, i, j := len(b)+1, len(a), len(b)
	text = make([]byte, table[len(table)-1])
	for at := len(text); i > 0 && j > 0; {
		switch {
		case a[i-1] == b[j-1]:
			at--
			text[at] = a[i-1]
			if n := len(out); n > 0 && out[n-1].a-out[n-1].n == int64(i-1) && out[n-1].b-out[n-1].n == int64(j-1) {
				out[n-1].n++
			} else {
				out = append(out, match{int64(i - 1), int64(j - 1), 1})
			}
			i, j = i-1, j-1
		case table[(i-1)*width+j] > table[i*width+j-1]:
			i--
		default:
			j--
		}
	}
	return text, out
}

func (c *Call) lcsMatches(matches []match, total int64, o *lcsOptions) error {
	c.W.Header(resp.Map, 2)
	c.W.BulkString("matches")
	err := c.W.Aggregate(resp.Array, func() (n int64, err error) {
		for _, m := range matches {
			if m.n < o.minLen {
				continue
			}
			n++
			size := int64(2)
			if o.withLen {
				size++
			}
			c.W.Header(resp.Array, size)
			for _, end := range []int64{m.a, m.b} {
				c.W.Header(resp.Array, 2)
				c.W.Int(end - m.n + 1)
				c.W.Int(end)
			}
			if o.withLen {
				c.W.Int(m.n)
			}
		}
		return n, nil
	})
	c.W.BulkString("len")
	c.W.Int(total)
	return err
}
