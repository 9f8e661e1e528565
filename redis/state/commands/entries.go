package commands

import (
	"strings"
	"sync"

	"kvferry/internal/shared/geo"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/syntax"
)

// run applies a command.
type run = func(s *state.Server, args [][]byte) error

// table has the commands of Redis up to 8.12 and Valkey up to 9.2 by name, in upper case. Up to Redis 8.6 and Valkey 9.1 it was
// compared with the servers (state.Writer.Known).
var table = sync.OnceValue(func() map[string]*command {
	t := map[string]*command{}
	for name, row := range syntax.Commands() {
		if row.Log == "" {
			continue
		}
		t[strings.ToUpper(name)] = &command{row, row.Has("write"), strings.HasSuffix(row.Log, "!"), finders[name], runs[name],
			state.Since(row.Since, row.Valkey), false}
	}
	for name := range t {
		if outer, _, is := strings.Cut(name, "|"); is {
			t[outer].container = true
		}
	}
	return t
})

// finders return the keys of commands whose options determine them.
var finders = map[string]finder{
	"set": setKeys, "msetex": msetexKeys, "pfcount": pfcountKeys, "move": moveKeys, "copy": copyKeys, "restore": restoreKeys,
	"restore-asking": restoreKeys, "migrate": migrateKeys, "sort": stored(2, "STORE"), "georadius": stored(5, "STORE", "STOREDIST"),
	"georadiusbymember": stored(4, "STORE", "STOREDIST"),
}

// runs apply commands. A write command that is not here has an effect that the replay does not follow.
var runs = map[string]run{
	"select": cmdSelect, "swapdb": cmdSwapDB, "flushdb": cmdFlush(false), "flushall": cmdFlush(true), "del": cmdDel,
	"unlink": cmdDel, "rename": cmdRename(false), "renamenx": cmdRename(true), "move": cmdMove, "copy": cmdCopy,
	"sort": cmdSort, "restore": cmdRestore, "restore-asking": cmdRestore, "expire": cmdExpire("EX"),
	"pexpire": cmdExpire("PX"), "expireat": cmdExpire("EXAT"), "pexpireat": cmdExpire("PXAT"), "persist": cmdPersist,
	"getex": cmdGetex, "getdel": cmdGetdel, "delex": cmdDelex, "delifeq": cmdDelifeq, "trimslots": cmdTrimslots,
	"cluster|flushslot": cmdFlushslot, "cluster|syncslots": cmdSyncslots,
	"multi": refused("ERR MULTI calls can not be nested"), "exec": refused("ERR EXEC without MULTI"),
	"discard": refused("ERR DISCARD without MULTI"),

	"set": cmdSet, "setex": cmdSetex("EX"), "psetex": cmdSetex("PX"), "setnx": cmdSetnx, "getset": cmdGetset, "mset": cmdMset,
	"msetnx": cmdMsetnx, "msetex": cmdMsetex, "append": cmdAppend, "setrange": cmdSetrange, "incr": cmdIncr(1),
	"decr": cmdIncr(-1), "incrby": cmdIncr(1), "decrby": cmdIncr(-1), "setbit": cmdSetbit, "bitop": cmdBitop,
	"bitfield": cmdBitfield, "pfadd": cmdPfadd, "pfmerge": cmdPfmerge, "pfcount": cmdPfcount,

	"hset": cmdHset, "hmset": cmdHset, "hsetnx": cmdHsetnx, "hdel": cmdRemove(record.Hash), "hincrby": cmdHincrby,
	"hexpire": cmdHexpire("EX"), "hpexpire": cmdHexpire("PX"), "hexpireat": cmdHexpire("EXAT"),
	"hpexpireat": cmdHexpire("PXAT"), "hpersist": cmdHpersist, "hsetex": cmdHsetex, "hgetex": cmdHgetex,
	"hgetdel": cmdHgetdel,

	"rpush": cmdPush(false, false), "lpush": cmdPush(true, false), "rpushx": cmdPush(false, true),
	"lpushx": cmdPush(true, true), "lpop": cmdPop(true), "rpop": cmdPop(false), "lset": cmdLset, "ltrim": cmdLtrim,
	"linsert": cmdLinsert, "lrem": cmdLrem, "rpoplpush": cmdRpoplpush, "lmove": cmdLmove, "lmovem": cmdLmovem,
	"blmovem": unblocked(5, cmdLmovem),

	"sadd": cmdSadd, "srem": cmdRemove(record.Set), "smove": cmdSmove, "sunionstore": cmdSetStore(setUnion),
	"sinterstore": cmdSetStore(setInter), "sdiffstore": cmdSetStore(setDiff),

	"zadd": cmdZadd, "zincrby": cmdZincrby, "zrem": cmdRemove(record.ZSet), "zpopmin": cmdZpop(false),
	"zpopmax": cmdZpop(true), "zremrangebyrank": cmdZremrangebyrank, "zremrangebyscore": cmdZremrangebyscore,
	"zremrangebylex": cmdZremrangebylex, "zunionstore": cmdZstore(zsetUnion), "zinterstore": cmdZstore(zsetInter),
	"zdiffstore": cmdZstore(zsetDiff), "zrangestore": cmdZrangestore, "zmove": cmdZmove, "bzmove": unblocked(4, cmdZmove),
	"zmovemember": cmdZmovemember,

	"geosearchstore": cmdGeosearchstore, "georadius": cmdGeoradius(geo.Around),
	"georadiusbymember": cmdGeoradius(geo.AroundMember),

	"xadd": cmdXadd, "xtrim": cmdXtrim, "xdel": cmdXdel, "xdelex": cmdXdelex, "xackdel": cmdXackdel, "xsetid": cmdXsetid,
	"xack": cmdXack, "xclaim": cmdXclaim, "xcfgset": cmdProducers, "xidmprecord": cmdProducers,
	"xgroup|create": cmdXgroup(groupCreate), "xgroup|setid": cmdXgroup(groupMove), "xgroup|destroy": cmdXgroup(groupDestroy),
	"xgroup|createconsumer": cmdXgroup(groupCreateConsumer), "xgroup|delconsumer": cmdXgroup(groupDeleteConsumer),

	"function|load": cmdFunctionLoad, "function|delete": cmdFunctionDelete, "function|flush": cmdFunctionFlush,
	"function|restore": cmdFunctionRestore,
}
