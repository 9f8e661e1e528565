package encode

import (
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// packing returns the packed encoding of small collections.
func packing(v rdb.Version) pack.Kind {
	if v.Number >= 10 {
		return pack.Listpack
	}
	return pack.Ziplist
}

// streamType returns the type of streams.
func streamType(v rdb.Version) rdb.Type {
	switch {
	case v.Number >= 11:
		return rdb.TypeStream3
	case v.Number == 10:
		return rdb.TypeStream2
	}
	return rdb.TypeStream
}
