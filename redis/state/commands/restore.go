package commands

import (
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// cmdRestore is RESTORE key ttl payload with its options.
func cmdRestore(s *server.Server, a [][]byte) error {
	if s.Restore == nil {
		return server.Unsupported("RESTORE", "payloads are not read here")
	}
	ttl, err := server.ParseInt(a[2])
	if err != nil || ttl < 0 {
		return server.Refuse("ERR Invalid TTL value, must be >= 0")
	}
	replace, absolute := false, false
	for i := 4; i < len(a); i++ {
		switch {
		case server.Is(a[i], "REPLACE"):
			replace = true
		case server.Is(a[i], "ABSTTL"):
			absolute = true
		case (server.Is(a[i], "IDLETIME") || server.Is(a[i], "FREQ")) && i+1 < len(a):
			i++
		default:
			return server.ErrSyntax
		}
	}
	if !replace && s.DB.Find(a[1]) != nil {
		return server.Refuse("BUSYKEY Target key name already exists.")
	}
	if ttl > 0 && !absolute {
		ttl += s.Now
	}
	var put *state.Put
	err = s.Restore(a[3], func(h *record.Header) *state.Put {
		own := *h
		own.Key, own.ExpireMS = a[1], ttl
		put = s.DB.Put(&own)
		return put
	})
	if err != nil {
		return server.Refuse("ERR Bad data format")
	}
	return put.End()
}
