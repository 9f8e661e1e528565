package commands

import (
	"errors"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/state"
)

// cmdRestore is RESTORE key ttl payload with its options.
func cmdRestore(s *state.Server, a [][]byte) error {
	if s.Restore == nil {
		return state.Unsupported("RESTORE", "payloads are not read here")
	}
	ttl, err := argument.ParseInt(a[2])
	if err != nil || ttl < 0 {
		return argument.Refuse("ERR Invalid TTL value, must be >= 0")
	}
	replace, absolute, err := restoreOptions(s, a[4:])
	if err != nil {
		return err
	}
	if !replace && s.DB.Find(a[1]) != nil {
		return argument.Refuse("BUSYKEY Target key name already exists.")
	}
	if ttl > 0 && !absolute {
		ttl += s.Now
	}
	var put *state.Put
	err = s.Restore(a[3], func(h *record.Header) *state.Put {
		h.Key, h.ExpireMS = a[1], ttl
		put = s.DB.Put(h)
		return put
	})
	switch {
	case errors.Is(err, rdb.ErrNewer):
		return state.Unsupported("RESTORE", err.Error())
	case err != nil:
		return argument.Refuse("ERR Bad data format")
	}
	return put.End()
}

// restoreOptions parses the arguments after the payload. Idle times and access frequencies are not kept.
func restoreOptions(s *state.Server, a [][]byte) (replace, absolute bool, err error) {
	idle, freq := false, false
	for i := 0; i < len(a); i++ {
		most := int64(math.MaxInt64)
		switch {
		case argument.Is(a[i], "REPLACE"):
			replace = true
			continue
		case argument.Is(a[i], "ABSTTL"):
			absolute = true
			continue
		case argument.Is(a[i], "IDLETIME") && i+1 < len(a) && !freq:
			idle = true
		case argument.Is(a[i], "FREQ") && i+1 < len(a) && !idle:
			freq, most = true, 255
		default:
			return false, false, s.Option("RESTORE", a[i])
		}
		i++
		if n, err := argument.ParseInt(a[i]); err != nil || n < 0 || n > most {
			return false, false, argument.Refuse("ERR Invalid IDLETIME or FREQ value")
		}
	}
	return replace, absolute, nil
}
