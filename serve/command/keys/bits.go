package keys

import (
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/hll"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var bitCommands = command.Functions{
	"getbit": getbit, "bitcount": bitcount, "bitpos": bitpos, "bitfield_ro": bitfieldRO, "pfcount": pfcount,
}

func getbit(c *command.Call) error {
	at, err := argument.ParseInt(c.Args[2])
	if err != nil || at < 0 || at >= argument.MaxBit {
		return argument.ErrBitOffset
	}
	return c.Text(c.Args[1], func(b []byte) error {
		c.W.Int(bitAt(b, at))
		return nil
	})
}

func bitcount(c *command.Call) error {
	var r bitRange
	bad := r.Read(c.Args[2:], false)
	return c.Text(c.Args[1], func(b []byte) error {
		if bad != nil && b != nil {
			return bad
		}
		c.W.Int(r.Count(b))
		return nil
	})
}

func bitpos(c *command.Call) error {
	want, err := argument.ParseInt(c.Args[2])
	if err != nil {
		return err
	}
	if want != 0 && want != 1 {
		return argument.Refuse("ERR The bit argument must be 1 or 0.")
	}
	var r bitRange
	bad := r.Read(c.Args[3:], true)
	return c.Text(c.Args[1], func(b []byte) error {
		switch {
		case b == nil:
			c.W.Int(-want)
			return nil
		case bad != nil:
			return bad
		}
		c.W.Int(r.Find(b, want))
		return nil
	})
}

func bitfieldRO(c *command.Call) error {
	fields, err := argument.ParseBitOps(c.Args[2:])
	for i := range fields { // the first error counts
		if fields[i].Off >= argument.MaxBit {
			return argument.ErrBitOffset
		}
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(fields, func(f argument.BitOp) bool { return f.Kind != 'G' }) {
		return argument.Refuse("ERR BITFIELD_RO only supports the GET subcommand")
	}
	return c.Text(c.Args[1], func(b []byte) error {
		c.W.Header(resp.Array, int64(len(fields)))
		for i := range fields {
			c.W.Int(bitField(b, &fields[i]))
		}
		return nil
	})
}

// pfcount counts the union of HyperLogLogs.
func pfcount(c *command.Call) error {
	var most hll.Registers
	for _, key := range c.Args[1:] {
		err := c.Text(key, func(b []byte) error {
			if b == nil {
				return nil
			}
			if !hll.Is(b) {
				return argument.Refuse("WRONGTYPE Key is not a valid HyperLogLog string value.")
			}
			regs, ok := hll.Sketch(append([]byte{}, b...)).Registers()
			if !ok {
				return argument.Refuse("INVALIDOBJ Corrupted HLL object detected")
			}
			for i, v := range regs {
				most[i] = max(most[i], v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.W.Int(int64(most.Count()))
	return nil
}
