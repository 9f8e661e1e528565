package commands

import (
	"strconv"
	"strings"

	"kvferry/internal/shared/geo"
	"kvferry/record"
	"kvferry/redis/state"
)

// table has the commands of Redis up to 8.12 and Valkey up to 9.2, by name; some subcommands by both names. Up to Redis 8.6
// and Valkey 9.1 it was compared with the servers (state.Writer.Known).
var table = tableOf(map[string]signature{
	"SELECT": {2, 0, nil, cmdSelect}, "SWAPDB": {3, write, nil, cmdSwapDB}, "FLUSHDB": {-1, write, nil, cmdFlush(false)},
	"FLUSHALL": {-1, write, nil, cmdFlush(true)}, "DEL": {-2, write, every(writes, 1, 0), cmdDel},
	"UNLINK": {-2, write, every(writes, 1, 0), cmdDel}, "RENAME": {3, write, two(writes, writes), cmdRename(false)},
	"RENAMENX": {3, write, two(update, update), cmdRename(true)}, "MOVE": {-3, write, moveKeys, cmdMove},
	"COPY": {-3, write, copyKeys, cmdCopy}, "SORT": {-2, write, stored(2, "STORE"), cmdSort},
	"RESTORE": {-4, write, restoreKeys, cmdRestore}, "RESTORE-ASKING": {-4, write, restoreKeys, cmdRestore},
	"EXPIRE": {-3, write, one(update), cmdExpire("EX")}, "PEXPIRE": {-3, write, one(update), cmdExpire("PX")},
	"EXPIREAT": {-3, write, one(update), cmdExpire("EXAT")}, "PEXPIREAT": {-3, write, one(update), cmdExpire("PXAT")},
	"PERSIST": {2, write, one(update), cmdPersist}, "GETEX": {-2, write, one(update), cmdGetex},
	"GETDEL": {2, write, one(update), cmdGetdel}, "DELEX": {-2, write, one(update), cmdDelex},
	"DELIFEQ": {3, write, one(update), cmdDelifeq}, "MIGRATE": {-6, write, behind("KEYS", 1, 3), nil},
	"TRIMSLOTS": {-5, write, nil, cmdTrimslots}, "CLUSTER": {-2, container, nil, nil},
	"CLUSTER FLUSHSLOT": {-3, write, nil, cmdFlushslot}, "CLUSTER SYNCSLOTS": {-3, 0, nil, cmdSyncslots},
	"MULTI": {1, 0, nil, refused("ERR MULTI calls can not be nested")}, "EXEC": {1, 0, nil, refused("ERR EXEC without MULTI")},
	"DISCARD": {1, 0, nil, refused("ERR DISCARD without MULTI")},

	"SET": {-3, write, setKeys, cmdSet}, "SETEX": {4, write, one(writes), cmdSetex("EX")},
	"PSETEX": {4, write, one(writes), cmdSetex("PX")}, "SETNX": {3, write, one(update), cmdSetnx},
	"GETSET": {3, write, one(update), cmdGetset}, "MSET": {-3, write, every(writes, 2, 0), cmdMset},
	"MSETNX": {-3, write, every(update, 2, 0), cmdMsetnx}, "MSETEX": {-4, write, msetexKeys, cmdMsetex},
	"APPEND": {3, write, one(update), cmdAppend}, "SETRANGE": {4, write, one(update), cmdSetrange},
	"INCR": {2, write, one(update), cmdIncr(1)}, "DECR": {2, write, one(update), cmdIncr(-1)},
	"INCRBY": {3, write, one(update), cmdIncr(1)}, "DECRBY": {3, write, one(update), cmdIncr(-1)},
	"INCRBYFLOAT": {3, write, one(update), nil}, "SETBIT": {4, write, one(update), cmdSetbit},
	"BITOP": {-4, write, bitopKeys, cmdBitop}, "BITFIELD": {-2, write, one(update), cmdBitfield},
	"PFADD": {-2, write, one(update), cmdPfadd}, "PFMERGE": {-2, write, pfmergeKeys, cmdPfmerge},
	"PFCOUNT": {-2, 0, pfcountKeys, cmdPfcount}, "PFDEBUG": {3, write, second, nil},
	"INCREX": {-2, write, one(update), nil}, "BITCONVERT": {2, write, one(update), nil}, "BITROAROP": {-4, write, bitopKeys, nil},

	"HSET": {-4, write, one(update), cmdHset}, "HMSET": {-4, write, one(update), cmdHset}, "HSETNX": {4, write, one(update), cmdHsetnx},
	"HDEL": {-3, write, one(update), cmdRemove(record.Hash)}, "HINCRBY": {4, write, one(update), cmdHincrby},
	"HINCRBYFLOAT": {4, write, one(update), nil}, "HEXPIRE": {-6, write, one(update), cmdHexpire("EX")},
	"HPEXPIRE": {-6, write, one(update), cmdHexpire("PX")}, "HEXPIREAT": {-6, write, one(update), cmdHexpire("EXAT")},
	"HPEXPIREAT": {-6, write, one(update), cmdHexpire("PXAT")}, "HPERSIST": {-5, write, one(update), cmdHpersist},
	"HSETEX": {-6, write, one(update), cmdHsetex}, "HGETEX": {-5, write, one(update), cmdHgetex},
	"HGETDEL": {-5, write, one(update), cmdHgetdel}, "PHSET": {-3, write, one(update), nil}, "PHDEL": {-2, write, one(update), nil},

	"RPUSH": {-3, write, one(update), cmdPush(false, false)}, "LPUSH": {-3, write, one(update), cmdPush(true, false)},
	"RPUSHX": {-3, write, one(update), cmdPush(false, true)}, "LPUSHX": {-3, write, one(update), cmdPush(true, true)},
	"LPOP": {-2, write, one(update), cmdPop(true)}, "RPOP": {-2, write, one(update), cmdPop(false)},
	"LSET": {4, write, one(update), cmdLset}, "LTRIM": {4, write, one(update), cmdLtrim},
	"LINSERT": {5, write, one(update), cmdLinsert}, "LREM": {4, write, one(update), cmdLrem},
	"RPOPLPUSH": {3, write, two(update, update), cmdRpoplpush}, "LMOVE": {5, write, two(update, update), cmdLmove},
	"LMOVEM": {-5, write, two(update, update), cmdLmovem}, "BLMOVEM": {-6, write, two(update, update), unblocked(5, cmdLmovem)},
	"BLMOVE": {6, write, two(update, update), nil}, "BRPOPLPUSH": {4, write, two(update, update), nil},
	"LMPOP": {-4, write, counted(1, update, 0), nil}, "BLMPOP": {-5, write, counted(2, update, 0), nil},
	"BLPOP": {-3, write, every(update, 1, 1), nil}, "BRPOP": {-3, write, every(update, 1, 1), nil},

	"SADD": {-3, write, one(update), cmdSadd}, "SREM": {-3, write, one(update), cmdRemove(record.Set)},
	"SPOP": {-2, write, one(update), nil}, "SMOVE": {4, write, two(update, update), cmdSmove},
	"SUNIONSTORE": {-3, write, into(1), cmdSetStore(setUnion)}, "SINTERSTORE": {-3, write, into(1), cmdSetStore(setInter)},
	"SDIFFSTORE": {-3, write, into(1), cmdSetStore(setDiff)}, "SADDEX": {-4, write, one(update), nil},
	"SEXPIRE": {-5, write, one(update), nil}, "SPEXPIRE": {-5, write, one(update), nil}, "SEXPIREAT": {-5, write, one(update), nil},
	"SPEXPIREAT": {-5, write, one(update), nil}, "SPERSIST": {-3, write, one(update), nil},

	"ZADD": {-4, write, one(update), cmdZadd}, "ZINCRBY": {4, write, one(update), cmdZincrby},
	"ZREM": {-3, write, one(update), cmdRemove(record.ZSet)}, "ZPOPMIN": {-2, write, one(update), cmdZpop(false)},
	"ZPOPMAX": {-2, write, one(update), cmdZpop(true)}, "BZPOPMIN": {-3, write, every(update, 1, 1), nil},
	"BZPOPMAX": {-3, write, every(update, 1, 1), nil}, "ZMPOP": {-4, write, counted(1, update, 0), nil},
	"BZMPOP": {-5, write, counted(2, update, 0), nil}, "ZREMRANGEBYRANK": {4, write, one(update), cmdZremrangebyrank},
	"ZREMRANGEBYSCORE": {4, write, one(update), cmdZremrangebyscore}, "ZREMRANGEBYLEX": {4, write, one(update), cmdZremrangebylex},
	"ZUNIONSTORE": {-4, write, counted(2, reads, writes), cmdZstore(zsetUnion)},
	"ZINTERSTORE": {-4, write, counted(2, reads, writes), cmdZstore(zsetInter)},
	"ZDIFFSTORE":  {-4, write, counted(2, reads, writes), cmdZstore(zsetDiff)},
	"ZRANGESTORE": {-5, write, two(writes, reads), cmdZrangestore}, "ZMOVE": {-4, write, two(update, update), cmdZmove},
	"BZMOVE": {-5, write, two(update, update), unblocked(4, cmdZmove)}, "ZMOVEMEMBER": {-6, write, two(update, update), cmdZmovemember},

	"GEOADD": {-5, write, one(update), nil}, "GEOSEARCHSTORE": {-8, write, two(writes, reads), cmdGeosearchstore},
	"GEORADIUS":         {-6, write, stored(5, "STORE", "STOREDIST"), cmdGeoradius(geo.Around)},
	"GEORADIUSBYMEMBER": {-5, write, stored(4, "STORE", "STOREDIST"), cmdGeoradius(geo.AroundMember)},

	"XADD": {-5, write, one(update), cmdXadd}, "XTRIM": {-4, write, one(update), cmdXtrim},
	"XDEL": {-3, write, one(update), cmdXdel}, "XDELEX": {-5, write, one(update), cmdXdelex},
	"XACKDEL": {-6, write, one(update), cmdXackdel}, "XSETID": {-3, write, one(update), cmdXsetid},
	"XACK": {-4, write, one(update), cmdXack}, "XCLAIM": {-6, write, one(update), cmdXclaim},
	"XAUTOCLAIM": {-6, write, one(update), nil}, "XREADGROUP": {-7, write, behind("STREAMS", 2, 0), nil},
	"XNACK": {-4, write, one(update), nil}, "XCFGSET": {-2, 0, one(update), cmdProducers}, "XIDMPRECORD": {5, 0, one(update), cmdProducers},
	"XGROUP": {-2, container, nil, nil}, "XGROUP CREATE": {-5, write, second, cmdXgroup(groupCreate)},
	"XGROUP SETID":          {-5, write, second, cmdXgroup(groupMove)},
	"XGROUP DESTROY":        {4, write, second, cmdXgroup(groupDestroy)},
	"XGROUP CREATECONSUMER": {5, write, second, cmdXgroup(groupCreateConsumer)},
	"XGROUP DELCONSUMER":    {5, write, second, cmdXgroup(groupDeleteConsumer)}, "XGROUP HELP": {2, 0, nil, nil},

	"ARSET": {-4, write, one(update), nil}, "ARMSET": {-4, write, one(update), nil}, "ARDEL": {-3, write, one(update), nil},
	"ARDELRANGE": {-4, write, one(update), nil}, "ARINSERT": {-3, write, one(update), nil}, "ARRING": {-3, write, one(update), nil},
	"ARSEEK": {3, write, one(update), nil},

	"VADD": {-5, write, one(update), nil}, "VREM": {3, write, one(update), nil}, "VSETATTR": {4, write, one(update), nil},

	"EVAL": {-3, wild, counted(2, update, 0), nil}, "EVALSHA": {-3, wild, counted(2, update, 0), nil},
	"FCALL": {-3, wild, counted(2, update, 0), nil}, "DEBUG": {-2, wild, nil, nil}, "MODULE": {-2, wild, nil, nil}, "RESET": {1, wild, nil, nil},

	"FUNCTION": {-2, container, nil, nil}, "FUNCTION LOAD": {-3, write, nil, cmdFunctionLoad},
	"FUNCTION DELETE": {3, write, nil, cmdFunctionDelete}, "FUNCTION FLUSH": {-2, write, nil, cmdFunctionFlush},
	"FUNCTION RESTORE": {-3, write, nil, cmdFunctionRestore}, "FUNCTION DUMP": {2, 0, nil, nil}, "FUNCTION HELP": {2, 0, nil, nil},
	"FUNCTION KILL": {2, 0, nil, nil}, "FUNCTION LIST": {-2, 0, nil, nil}, "FUNCTION STATS": {2, 0, nil, nil},
}, `
	GET 2 MGET -2 STRLEN 2 GETRANGE 4 SUBSTR 4 GETBIT 3 BITCOUNT -2 BITPOS -3 BITFIELD_RO -2 LCS -3 DIGEST 2
	EXISTS -2 TYPE 2 TTL 2 PTTL 2 EXPIRETIME 2 PEXPIRETIME 2 KEYS 2 SCAN -2 RANDOMKEY 1 DBSIZE 1 DUMP 2 TOUCH -2 SORT_RO -2
	HGET 3 HMGET -3 HGETALL 2 HKEYS 2 HVALS 2 HLEN 2 HEXISTS 3 HSTRLEN 3 HSCAN -3 HRANDFIELD -2 HTTL -5 HPTTL -5
	HEXPIRETIME -5 HPEXPIRETIME -5 LINDEX 3 LLEN 2 LRANGE 4 LPOS -3 SCARD 2 SISMEMBER 3 SMISMEMBER -3 SMEMBERS 2 SRANDMEMBER -2
	SSCAN -3 SDIFF -2 SINTER -2 SUNION -2 SINTERCARD -3 ZCARD 2 ZCOUNT 4 ZLEXCOUNT 4 ZSCORE 3 ZMSCORE -3 ZRANK -3 ZREVRANK -3
	ZRANGE -4 ZREVRANGE -4 ZRANGEBYSCORE -4 ZREVRANGEBYSCORE -4 ZRANGEBYLEX -4 ZREVRANGEBYLEX -4 ZSCAN -3 ZRANDMEMBER -2
	ZUNION -3 ZINTER -3 ZDIFF -3 ZINTERCARD -3 GEODIST -4 GEOHASH -2 GEOPOS -2 GEOSEARCH -7 GEORADIUS_RO -6 GEORADIUSBYMEMBER_RO -5
	XLEN 2 XRANGE -4 XREVRANGE -4 XREAD -4 XPENDING -3 XINFO -2 OBJECT -2 MEMORY -2 VCARD 2 VDIM 2 VEMB -3 VGETATTR 3 VINFO 2
	VISMEMBER 3 VLINKS -3 VRANDMEMBER -2 VRANGE -4 VSIM -4 EVAL_RO -3 EVALSHA_RO -3 FCALL_RO -3 PUBLISH 3 SPUBLISH 3 PUBSUB -2
	PING -1 ECHO 2 WATCH -2 UNWATCH 1 ASKING 1 SCRIPT -2 REPLCONF -1 CLIENT -2 CONFIG -2 COMMAND -1 INFO -1 TIME 1 WAIT 3 WAITAOF 4
	READONLY 1 READWRITE 1 PFSELFTEST 1 LOLWUT -1 ACL -2 AUTH -2 HELLO -1 LATENCY -2 SLOWLOG -2 ROLE 1 LASTSAVE 1
	BLESS -2 BACKUP -2`, `
	Redis 7.4 HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST
	Redis 8.0 HSETEX HGETEX HGETDEL VADD VREM VSETATTR
	Redis 8.2 XDELEX XACKDEL
	Redis 8.4 MSETEX DELEX TRIMSLOTS
	Redis 8.6 XCFGSET XIDMPRECORD
	Redis 8.8 INCREX XNACK ARSET ARMSET ARDEL ARDELRANGE ARINSERT ARRING ARSEEK
	Redis 8.10 LMOVEM BLMOVEM
	Redis 8.12 ZMOVE BZMOVE ZMOVEMEMBER BITCONVERT BITROAROP SADDEX SPERSIST SEXPIRE SPEXPIRE SEXPIREAT SPEXPIREAT BLESS
	Valkey 9.0 HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HSETEX HGETEX DELIFEQ CLUSTER/FLUSHSLOT CLUSTER/SYNCSLOTS
	Valkey 9.1 HGETDEL MSETEX
	Valkey 9.2 DELEX XDELEX XACKDEL INCREX PHSET PHDEL`)

// tableOf makes the table from signatures, the names and arities of commands that change no key, and the names that came with
// versions of servers.
func tableOf(all map[string]signature, plain, newer string) map[string]*command {
	t := map[string]*command{}
	for name, f := range all {
		t[name] = &command{signature: f}
	}
	words := strings.Fields(plain)
	for i := 0; i < len(words); i += 2 {
		arity, _ := strconv.Atoi(words[i+1])
		t[words[i]] = &command{signature: signature{arity: arity}}
	}
	for line := range strings.Lines(strings.TrimSpace(newer)) {
		words := strings.Fields(line)
		w, _ := state.ParseWriter(strings.ToLower(words[0])+"-ver", words[1])
		for _, name := range words[2:] {
			c := t[strings.Replace(name, "/", " ", 1)]
			c.since = append(c.since, w)
		}
	}
	return t
}
