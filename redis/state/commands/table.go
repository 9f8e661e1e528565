package commands

import (
	"kvferry/record"
	"kvferry/redis/state/server"
	"kvferry/redis/state/streams"
)

// command is what is known of a command.
type command struct {
	least int // arguments, the name among them
	run   func(*server.Server, [][]byte) error
}

// Do applies a command, whose name comes first, to the selected database. A *server.ReplyError means that a server would
// have refused it, a *server.UnsupportedError that its effect is not known; both have changed nothing, unless the latter
// says Near. Other errors are of the store.
func Do(s *server.Server, args [][]byte) error {
	if err := s.DB.Err(); err != nil {
		return err
	}
	name := s.Upper(args[0])
	c, ok := table[string(name)]
	if !ok {
		return server.Unsupported(string(name), "kvferry does not know this command")
	}
	if len(args) < c.least {
		return server.ErrArgs
	}
	err := c.run(s, args)
	if serr := s.DB.Err(); serr != nil {
		return serr
	}
	return err
}

// table has the commands whose effect is known, by name.
var table = map[string]command{
	"SELECT": {2, cmdSelect}, "SWAPDB": {3, cmdSwapDB}, "FLUSHDB": {1, cmdFlushDB}, "FLUSHALL": {1, cmdFlushAll},
	"DEL": {2, cmdDel}, "UNLINK": {2, cmdDel}, "RENAME": {3, cmdRename(false)}, "RENAMENX": {3, cmdRename(true)},
	"MOVE": {3, cmdMove}, "COPY": {3, cmdCopy}, "SORT": {2, cmdSort}, "RESTORE": {4, cmdRestore},
	"EXPIRE": {3, cmdExpire("EX")}, "PEXPIRE": {3, cmdExpire("PX")}, "EXPIREAT": {3, cmdExpire("EXAT")},
	"PEXPIREAT": {3, cmdExpire("PXAT")}, "PERSIST": {2, cmdPersist}, "GETEX": {2, cmdGetex}, "GETDEL": {2, cmdGetdel},

	"SET": {3, cmdSet}, "SETEX": {4, cmdSetex("EX")}, "PSETEX": {4, cmdSetex("PX")}, "SETNX": {3, cmdSetnx},
	"GETSET": {3, cmdGetset}, "MSET": {3, cmdMset}, "MSETNX": {3, cmdMsetnx}, "APPEND": {3, cmdAppend},
	"SETRANGE": {4, cmdSetrange}, "INCR": {2, cmdIncr(1)}, "DECR": {2, cmdIncr(-1)}, "INCRBY": {3, cmdIncr(1)},
	"DECRBY": {3, cmdIncr(-1)}, "SETBIT": {4, cmdSetbit}, "BITOP": {4, cmdBitop}, "BITFIELD": {2, cmdBitfield},
	"PFADD": {2, cmdPfadd}, "PFMERGE": {2, cmdPfmerge}, "PFCOUNT": {2, cmdPfcount},

	"HSET": {4, cmdHset}, "HMSET": {4, cmdHset}, "HSETNX": {4, cmdHsetnx}, "HDEL": {3, cmdRemove(record.Hash)}, "HINCRBY": {4, cmdHincrby},
	"HEXPIRE": {6, cmdHexpire("EX")}, "HPEXPIRE": {6, cmdHexpire("PX")}, "HEXPIREAT": {6, cmdHexpire("EXAT")},
	"HPEXPIREAT": {6, cmdHexpire("PXAT")}, "HPERSIST": {5, cmdHpersist}, "HSETEX": {6, cmdHsetex},
	"HGETEX": {5, cmdHgetex}, "HGETDEL": {5, cmdHgetdel},

	"RPUSH": {3, cmdPush(false, false)}, "LPUSH": {3, cmdPush(true, false)}, "RPUSHX": {3, cmdPush(false, true)},
	"LPUSHX": {3, cmdPush(true, true)}, "LPOP": {2, cmdPop(true)}, "RPOP": {2, cmdPop(false)}, "LSET": {4, cmdLset},
	"LTRIM": {4, cmdLtrim}, "LINSERT": {5, cmdLinsert}, "LREM": {4, cmdLrem}, "RPOPLPUSH": {3, cmdRpoplpush},
	"LMOVE": {5, cmdLmove},

	"SADD": {3, cmdSadd}, "SREM": {3, cmdRemove(record.Set)}, "SMOVE": {4, cmdSmove}, "SUNIONSTORE": {3, cmdSetStore(setUnion)},
	"SINTERSTORE": {3, cmdSetStore(setInter)}, "SDIFFSTORE": {3, cmdSetStore(setDiff)},

	"ZADD": {4, cmdZadd}, "ZINCRBY": {4, cmdZincrby}, "ZREM": {3, cmdRemove(record.ZSet)}, "ZPOPMIN": {2, cmdZpop(false)},
	"ZPOPMAX": {2, cmdZpop(true)}, "ZREMRANGEBYRANK": {4, cmdZremrangebyrank},
	"ZREMRANGEBYSCORE": {4, cmdZremrangebyscore}, "ZREMRANGEBYLEX": {4, cmdZremrangebylex},
	"ZUNIONSTORE": {4, cmdZstore(zsetUnion)}, "ZINTERSTORE": {4, cmdZstore(zsetInter)},
	"ZDIFFSTORE": {4, cmdZstore(zsetDiff)}, "ZRANGESTORE": {5, cmdZrangestore},
	"GEOSEARCHSTORE": {7, cmdGeosearchstore}, "GEORADIUS": {6, cmdGeoradius(false)},
	"GEORADIUSBYMEMBER": {5, cmdGeoradius(true)},

	"XADD": {5, streams.Add}, "XTRIM": {4, streams.Trim}, "XDEL": {3, streams.Delete}, "XSETID": {3, streams.SetID}, "XACK": {4, streams.Ack},
	"XGROUP": {2, streams.Group}, "XCLAIM": {6, streams.Claim},

	"FUNCTION": {2, cmdFunction}, "PUBLISH": {1, nothing}, "SPUBLISH": {1, nothing}, "PING": {1, nothing},
	"REPLCONF": {1, nothing}, "SCRIPT": {1, nothing},
}
