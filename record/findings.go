package record

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Kinds of findings about files and rows that do not depend on a format. Formats define their own;
// FindingKinds lists them all.
const (
	FindDamagedBlock    = "damaged-block"
	FindDamagedBlob     = "damaged-blob"
	FindDamagedPage     = "damaged-page"
	FindDamagedFile     = "damaged-file"
	FindMissingFile     = "missing-file"
	FindFileSize        = "file-size-mismatch"
	FindForeignTable    = "foreign-table"
	FindForeignLog      = "foreign-log"
	FindLogGap          = "log-gap"
	FindLastSequence    = "last-sequence"
	FindEntryCount      = "entry-count-mismatch"
	FindDeleteCount     = "delete-count-mismatch"
	FindKeyOrder        = "key-order"
	FindFileBounds      = "file-bounds"
	FindUnorderedTable  = "unordered-table"
	FindUnreadableStore = "unreadable-store"
	FindUnreadRows      = "unread-rows"
	FindStoreNotRead    = "store-not-read"
	FindBeside          = "kept-beside"
	FindDatasetBeside   = "dataset-beside"
	FindNoFile          = "not-a-file"
	FindLedger          = "ledger-mismatch"
	FindCircularOrder   = "circular-order"
	FindKeyTwice        = "key-twice"
	FindRefusedRead     = "refused-read"
	FindFileChecksum    = "file-checksum"
	FindReplaced        = "source-replaced"
	FindNewer           = "newer" // a row, value or section in a form that this build does not know
)

// FindingKind describes a kind of finding, for docs/findings.md and the rules of a SARIF report.
type FindingKind struct {
	Kind     string
	Severity Severity // the highest one possible
	Group    string   // one of FindingGroups
	Text     string   // one sentence
}

var findingKinds = []FindingKind{
	{FindDamagedBlock, Error, "files", "A block fails its checksum, cannot be decompressed or is malformed. Its rows, in the given key range, are missing; for a footer, metaindex, properties or dictionary, all rows of the table. Older versions of deleted or changed rows may become visible. A salvage works without a damaged index by searching for the data blocks, and a warning lists the checks that are then impossible. It is only a warning for parts that rows do not need: filters, and the metaindex of LevelDB. A filter that denies a key of its table is an error, because the engine misses the row."},
	{FindDamagedBlob, Error, "files", "A value in a blob file fails its checksum or does not match its row. The row is missing; older versions of it stay hidden. A warning for parts that no row needs: the footer of the file, and garbage values."},
	{FindDamagedFile, Error, "files", "A file cannot be read to its end or its header is damaged: CURRENT, a MANIFEST, a log with a damaged record, an LMDB file, an RDB file, the RDB part of an append-only file. A salvage continues after a damaged record of a log. Without a MANIFEST it reads all tables and logs of the directory in the order of their sequence numbers, and deleted rows may reappear."},
	{FindDamagedPage, Error, "files", "A page or node of an LMDB file is malformed; its rows, or all rows below it, are missing."},
	{FindDeleteCount, Error, "files", "The number of tombstones in a table differs from its properties: some rows are wrongly deleted or wrongly visible."},
	{FindEntryCount, Error, "files", "The number of entries, merge operands or range tombstones in a table, or the bytes of their keys or values, differs from its properties, although all checksums are right: rows are missing or were replaced. Checked after every block of the table was read."},
	{FindFileBounds, Error, "files", "A table contains a key outside the bounds in the MANIFEST, so lookups miss it."},
	{FindFileChecksum, Error, "files", "The checksum of a whole table or blob file differs from the MANIFEST, if the engine stores such checksums (file_checksum_gen_factory): the file was changed or replaced after it was written. A note if the checksum function is unknown, so that kvferry cannot compare."},
	{FindFileSize, Error, "files", "The size of a table differs from the MANIFEST, for example because it was cut off. Its rows are missing, as with a damaged block."},
	{FindForeignTable, Error, "files", "A table differs from its entry in the MANIFEST, although it has the right name and size: its first key, last key or unique id differs, or it was written for another column family. It comes from another dataset or another time, and kvferry does not read it; the rows of the right table are missing, as with a damaged block."},
	{FindForeignLog, Error, "files", "A log does not belong to the tables: it has sequence numbers that tables or another log already have. It is a copy, from another time or from another dataset. A warning if numbers decrease within one log, if column families that have flushed the log do not contain its numbers, or if the numbers may be older than the number of an ingested table."},
	{FindLastSequence, Warning, "files", "A RocksDB database has rows, but its last sequence number is 0. If a compaction runs while a snapshot is held, as by SCAN and KEYS, it drops every row. Early versions of kvferry wrote such databases; converting one to its own format repairs it."},
	{FindLogGap, Error, "files", "Sequence numbers are missing within a log, between logs, between the tables and the first log, or after the last log, or logs that contain writes according to the MANIFEST are empty, missing or too short: a log was lost, truncated or replaced, or the machine failed before its end reached the disk. A warning if tables may contain the writes, if the writes may have bypassed the log, or if the MANIFEST shows no gap: a flush drops a put together with its single deletion, and the deletion of an empty range."},
	{FindKeyOrder, Error, "files", "Rows of a table are not in the order of the database's comparator, so the engine misses some of them."},
	{FindKeyTwice, Warning, "rows", "The tree of an LMDB file holds a key more than once: a stock Ardb server wrote to a key that it could not find after a restart. kvferry uses the row that the server's search finds, or else the first row in the tree."},
	{FindLedger, Error, "files", "The rows read do not add up to the rows classified: a bug in kvferry."},
	{"lmdb-meta-page", Warning, "files", "One of the two meta pages of an LMDB file is damaged; the other was used."},
	{FindMissingFile, Error, "files", "A file that the database needs does not exist. The rows of a table are missing, as with a damaged block, and so are rows whose values are in a blob file; without CURRENT or MANIFEST a salvage reads all tables and logs of the directory (see damaged-file)."},
	{"no-log", Error, "files", "There is no log after the MANIFEST, although LevelDB always keeps one, and RocksDB does once a server has opened the directory, which LOCK and IDENTITY show: the last writes are missing. A warning without LOCK and IDENTITY: a checkpoint has no such files and no log, and an incomplete copy looks the same. With --wal-dir kvferry does not check this; if the MANIFEST proves that writes are missing, this is a log-gap in any case."},
	{"overlapping-tables", Warning, "files", "Two tables of a level overlap, although tables of that level must not; the engine may miss rows."},
	{"row-order", Warning, "files", "The rows of an LMDB file are not in the order of Ardb's comparator, a bug of the stock server; kvferry sorted them."},
	{FindRefusedRead, Warning, "files", "A read failed and succeeded when repeated: the disk or its connection is failing. Nothing is missing."},
	{"unlisted-file", Error, "files", "The directory of a Parquet dataset has a file that its manifest does not list; kvferry does not read it."},
	{"null-value", Error, "rows", "A row of a Parquet file of another program has a null where a record needs a key, field, value, member or score, or in the column mapped to index; kvferry does not read the row."},
	{"conflicting-rows", Error, "rows", "Rows of Parquet files of other programs repeat a key, field, member or index with a different value, or rows of a key differ in their expiry; kvferry reads the first row. Exact duplicates of a row are counted as index rows."},
	{"incomplete-dump", Warning, "files", "The dump that wrote a Parquet dataset reported errors (exit code 3): the affected data is not in it."},
	{FindBeside, Note, "files", "A directory that the server keeps next to its data, such as a backup, a checkpoint or a log for replicas, contains a store. It is a separate dataset, and kvferry does not read it."},
	{FindDatasetBeside, Note, "files", "A directory contains an append-only log and an RDB file of one server, or another log, such as a backup. kvferry reads one of them and counts the records of the other. A server with appendonly yes loads the log, and with appendonly no the RDB file. Also reported for a file of the log that its manifest does not list: a warning if it is newer than all listed files."},
	{FindNoFile, Warning, "files", "A file next to the stores, such as the `info` of BGSAVE, is a directory, a pipe, a device, or a link that does not lead to a regular file of the dataset; kvferry does not read or copy it."},
	{FindReplaced, Note, "files", "An RDB or append-only file was replaced while kvferry read it, as BGSAVE and BGREWRITEAOF do. kvferry read the earlier file to its end."},
	{FindStoreNotRead, Error, "files", "A directory below the source contains a store that the format does not use; kvferry does not read it. A warning for an unreadable directory where the format has no stores."},
	{"torn-log", Warning, "files", "The last log ends within a record, as after a crash; kvferry uses everything before it. Also reported if a log begins with zeros, ends in zeros that no engine preallocates, or contains only remains of an earlier use of the file. A note if a log ends in zeros that an engine may have preallocated or a power failure may have left."},
	{"manifest-behind", Error, "files", "A table not listed in the MANIFEST has rows that exist in no other table or log: the end of the MANIFEST is lost. A salvage also reads such tables, and so does verify. A warning if this cannot be determined, as for an unfinished table."},
	{"torn-manifest", Error, "files", "The MANIFEST ends within a record or a group of edits; tables listed in the lost part are not read. A warning if no unlisted table has rows that exist nowhere else, as after a crash."},
	{FindUnorderedTable, Warning, "files", "kvferry sorted a table before reading it; the finding key-order describes the problem."},
	{"unreferenced-table", Note, "files", "A table not listed in the MANIFEST. It is obsolete, or its rows are also in other tables or the logs, as after a kill."},
	{"unknown-family", Warning, "files", "A column family unknown to Kvrocks or KeyDB; the server does not start with it."},
	{"swapped-databases", Error, "files", "The rows in which KeyDB FLASH records SWAPDB name a column family twice, or omit one; kvferry reads each family as the database of its number."},
	{"unclean-shutdown", Note, "files", "A KeyDB server with FLASH was killed, or still runs: data that was only in its memory is missing. This includes commands that it had not answered and, after a failure of the machine, its last writes, which it does not sync."},
	{"unreferenced-blobs", Note, "files", "A blob file not listed in the MANIFEST. It is obsolete or was never finished, as after a kill."},
	{FindUnreadRows, Error, "files", "Records could not be read, for a reason other than damage."},
	{FindUnreadableStore, Error, "files", "A store cannot be opened."},
	{"trailing-data", Error, "files", "Bytes follow the end of an RDB file; kvferry does not read them. An error if they are another RDB file, as after `cat a.rdb b.rdb`, or commands of an append-only file; a warning if they are something else; a note if all of them are zero, as on a block device."},
	{"aof-command", Error, "rows", "The value of a key at the end of an append-only file is unknown, because it was last written by a command with an unknown effect (of a vector set, a module, a script or a newer server), or by a command that kvferry rejects although the original server may have executed it. The key is left out. A finding without a key is a command that may have changed keys that it does not name. convert calls this loss aof-command."},
	{"aof-cut", Warning, "files", "The last command of an append-only file is incomplete, or a MULTI has no EXEC, as after a crash. Servers cut it off; kvferry ignores it."},
	{"aof-damaged", Error, "files", "An append-only file contains bytes that are not a command; kvferry does not read the rest."},
	{"aof-empty", Error, "files", "An append-only log is empty, although the RDB file of the same server has records: with appendonly yes the server starts empty. This happens if appendonly was switched on in the configuration file only."},
	{"aof-manifest", Error, "files", "The manifest of a multi-part append-only log is missing, so only the file names show the parts of the log and their order. kvferry reads them with --salvage. A warning if the location names one of the files and their numbers have no gap; a note if there is only a base file, as in a backup of Redis 8.10 before BACKUP SEAL."},
	{"aof-module-aux", Warning, "files", "The RDB part of an append-only file contains module data that belongs to no key; kvferry does not read it."},
	{"aof-refused", Note, "rows", "Commands of an append-only file fail when replayed. The server that wrote the file also skips them; its version is recorded in the RDB part."},
	{"aof-near", Note, "rows", "Commands of an append-only file stored numbers whose last bits depend on the server's C library, such as geographic distances, or set an expiry of fields that Valkey accepts and Redis refuses, or changed the state of idempotent producers in streams."},
	{"scanned-server", Note, "files", "A server does not accept replicas, so kvferry read its keys with SCAN and DUMP, each at a different time: keys that change during the scan may be read in their old or new state."},
	{"library-differs", Error, "files", "Masters of a cluster have function libraries with the same name and different code; kvferry reads the first."},
	{"one-cluster-node", Warning, "files", "The address names a single node of a cluster, so the keys of the other nodes are not read. To read the whole cluster, use an address that begins with redis+cluster://."},
	{"functions-unread", Warning, "files", "A server does not allow reading its function libraries, so they are missing."},
	{"damaged-value", Error, "rows", "The value of a key in an RDB file cannot be decoded, or has a field or member more than once. kvferry reads the first of duplicate fields or members; otherwise it reads the part before the damage. It always reads the keys after it."},
	{"duplicate-key", Error, "rows", "An RDB file, or the RDB part of an append-only file, contains a key or a function library more than once; kvferry reads the first one, or in the RDB part of an append-only file the last one. Servers do not load such a file."},
	{LossMemberExpiry, Warning, "rows", "Members of a set or sorted set have an expiry, as on KeyDB and Dragonfly. kvferry cannot represent it; convert calls this loss member-expiry. Members that have expired are left out."},
	{"group-ahead", Warning, "rows", "A consumer group in an RDB file has read more entries than its stream ever had. Redis 8.10 and later do not load the file. kvferry writes the number as unknown."},
	{"stream-length", Warning, "rows", "The number of entries of a stream in an RDB file or in KeyDB FLASH differs from its header."},
	{"unread-metadata", Warning, "rows", "Modules attached metadata to keys of an RDB file, or a stream of Redis 8.6 remembers messages of idempotent producers. kvferry does not read this data."},
	{FindNewer, Error, "rows", "A row, value or section has a form that this version of kvferry does not know: it is longer than every known form, or has an unknown type, flag or mode. A newer server wrote it, or it is damaged. kvferry skips it and reads everything else; convert calls this loss newer."},
	{"bad-key-length", Error, "rows", "The length of the user key in a row's key exceeds the key."},
	{"bad-row-key", Error, "rows", "The part after the user key in a row's key is malformed."},
	{"bad-value", Error, "rows", "A value contains something impossible."},
	{"short-value", Error, "rows", "A value is shorter than its fixed part."},
	{"unknown-row", Error, "rows", "A row's key does not match any kind of row in the format."},
	{"malformed-key", Error, "rows", "An Ardb row's key cannot be decoded, or has elements of the wrong kind."},
	{"malformed-value", Error, "rows", "An Ardb row's value cannot be decoded or does not fit its kind of row."},
	{"slot-mismatch", Error, "rows", "The slot in a row's key, on a node of a Kvrocks cluster or in KeyDB FLASH, is not the slot of the user key; the server does not find the row."},
	{"bad-segment", Error, "rows", "A segment of a bitmap or HyperLogLog has an invalid number or length. A warning if it lies beyond the end or only its surplus is wrong."},
	{"short-segment", Note, "rows", "A segment of a Kvrocks bitmap ends early; BITPOS beyond its end crashes the server."},
	{"unmerged-operand", Error, "rows", "A row has a merge operand instead of a value."},
	{"empty-value", Warning, "rows", "A META row has no value, which RocksDB leaves after a lone merge operand; the key does not exist."},
	{"unused-rows", Warning, "rows", "Rows that the server never reads, because of their location."},
	{"half-imported", Note, "rows", "Keys of an RDB file or a log are in slots of a cluster that the server was importing when the file ended. It deletes them when it loads the file, so they do not count as records; --expired keep reads them."},
	{"int-namespace", Note, "rows", "MOVE wrote the name of a namespace as an integer; no client can select it."},
	{"field-bounds", Warning, "collections", "Fields of a Kvrocks hash expire before or after the bounds in its metadata; the server may count or show expired fields."},
	{"count-mismatch", Error, "collections", "The count in a meta row differs from the number of live rows. A warning if a size of SSDB is missing or too small: its server serves all elements."},
	{"size-mismatch", Warning, "collections", "The size in an Ardb META row differs from the number of its rows; the server cuts ranges by it."},
	{"orphan-rows", Warning, "collections", "Data rows of a key without a meta row; clients do not see them."},
	{"deleted-rows", Warning, "collections", "The count in a meta row is 0, but rows of its version exist."},
	{"newer-version", Error, "collections", "Data rows have a newer version than their meta row. A warning if clients do not see them, as in all formats except nemo."},
	{"hidden-version", Note, "collections", "The version ends in the byte FF, so the engine lists the collection as empty although its rows are sound."},
	{"colliding-keys", Error, "rows", "Two rows have the same user key, because Pika 4.0 truncates keys at their last NUL. kvferry does not read the second one."},
	{"truncated-key", Error, "rows", "The end of a key is not on disk, because Pika 4.0 truncates keys at their last NUL. kvferry reads the key up to there."},
	{"wrong-instance", Error, "collections", "A key is not in the Pika 4.0 instance of its slot, so the server does not find it. kvferry reads it, unless the right instance also has the key. If the keys would fit a larger number of instances, kvferry reports missing-store instead."},
	{"slot-number", Note, "collections", "Keys are distributed over the instances of Pika 4.0 with a default-slot-num other than the default."},
	{"missing-store", Error, "files", "A directory that the format always has is missing, or an instance of Pika 4.0 is missing or empty although the keys of the other instances prove its existence. A warning for a missing database below the last one (no db0 next to db1), or for a database directory without a database: servers always have all of them, but copies made with convert --db, or with numbers from 16 on, may not."},
	{"missing-score-cf", Error, "files", "The sorted sets have no score_cf; the engine does not open them."},
	{"stream-groups", Warning, "collections", "Consumer groups and pending entries that kvferry does not read."},
	{"future-version", Note, "collections", "The version of a Kvrocks key was created by a clock ahead of this one."},
	{"long-bitmap", Note, "collections", "A Kvrocks bitmap exceeds --max-bitmap; kvferry treats it as a value that only Kvrocks understands."},
	{"module-mismatch", Error, "collections", "The rows of a Kvrocks Bloom filter or t-digest differ from its metadata row, or the value of a JSON document is not one document."},
	{"stream-bounds", Error, "collections", "An entry of a stream lies beyond the last generated id. A warning if only the first or last id in the metadata row differs."},
	{"stream-group-mismatch", Error, "collections", "Rows of a consumer group that does not exist. A warning if the stream's count of groups, or a group's counts of consumers or pending entries are wrong."},
	{"stream-old-groups", Note, "collections", "Consumer groups in the layout of Kvrocks before 2.10; later servers do not read them."},
	{"left-behind", Note, "collections", "Scripts, functions, namespace tokens, search indexes or label indexes, which kvferry does not convert; in SSDB, the range of keys that a server of a cluster served."},
	{"member-twice", Error, "collections", "A member or field exists as an integer and as a string; kvferry keeps the integer."},
	{"not-canonical", Warning, "collections", "An integer is stored as a string. The server looks for an integer and does not find it."},
	{"negative-expiry", Note, "collections", "A string has a negative expiry, which the engine reads as never."},
	{"bad-expiry", Warning, "collections", "An expiry before 1970, which the server reads as never."},
	{"stale-ttl-rows", Note, "collections", "Rows of the TTL index do not match a key's expiry or do not belong to any key; servers leave such rows behind."},
	{"missing-ttl-row", Note, "collections", "A key with an expiry is not in the TTL index: it is hidden when it expires, but never removed."},
	{FindCircularOrder, Warning, "collections", "Integers in the row keys of a collection, including deleted rows, are 2^63 or more apart. Ardb's comparator overflows and orders them in a circle, so its lookups and deletes miss rows."},
	{"large-value", Note, "collections", "A value of SSDB has 128 MiB or more: the server serves it, but `ssdb-dump` fails on it and replicas stop before it."},
	{"list-broken-link", Error, "lists", "The head of a list, or the next link of a node, points to a missing node. kvferry also reads the nodes after the gap and the nodes linked from the other end."},
	{"list-prev-mismatch", Error, "lists", "The prev link of a node does not point to the node before it."},
	{"list-cycle", Error, "lists", "The next link of a node points to an earlier node. kvferry also reads the nodes linked from the other end."},
	{"list-unreachable-node", Error, "lists", "A node cannot be reached from either end of its list, not even across missing nodes; clients do not see it."},
	{"list-tail-mismatch", Error, "lists", "The right end in the meta row is not the last node of the list; RPUSH would lose that node."},
	{"list-next-seq", Error, "lists", "The next node number is in use; the next push would overwrite a node."},
	{"list-missing-index", Error, "lists", "An index between the bounds of a list has no row."},
	{"list-outside-bounds", Error, "lists", "The index of a row is outside the bounds of its list; clients do not see it. A warning for a queue of SSDB whose size agrees with its bounds: QSET leaves such items on replicas."},
	{"list-bounds", Warning, "lists", "The bounds in an Ardb list's META row differ from its rows. An error for a queue of SSDB without the row of its front or back: the server does not serve any of its items."},
	{"list-order", Error, "lists", "Rows of a list are not in the order of their indexes."},
	{"stream-last-id", Error, "collections", "A stream has an entry beyond the last id in its meta row; XADD would use the id again."},
	{"zset-missing-member-row", Error, "zsets", "A member has a row by score but no row by member; it can only be found by rank."},
	{"zset-missing-score-row", Error, "zsets", "A member has a row by member but no row by score; it has no rank."},
	{"zset-score-mismatch", Error, "zsets", "A member's two rows have different scores."},
	{"zset-bad-score", Error, "zsets", "A score is not a number, or is outside the range that the engine accepts."},
	{"zset-twin", Error, "zsets", "A member of an Ardb sorted set has a score row without a sort row, or the reverse."},
	{LossScorePrecision, Warning, "zsets", "A score of SSDB, or of a Parquet file of another program, has more digits than a float64 can represent, such as an integer beyond 2^53; kvferry reads the nearest float64. A conversion reports a loss of the same name for each, except from SSDB to SSDB; for SSDB, which can hold such scores, `verify` counts them in one note for each sorted set."},
	{"score-nan", Warning, "zsets", "A score is not a number."},
}

// FindingGroups are the groups of kinds, in the order of the docs.
var FindingGroups = []string{"files", "rows", "collections", "lists", "zsets"}

// FindingKinds lists every kind of finding that the project reports, by group and name.
func FindingKinds() []FindingKind {
	out := slices.Clone(findingKinds)
	slices.SortFunc(out, func(a, b FindingKind) int {
		return cmp.Or(slices.Index(FindingGroups, a.Group)-slices.Index(FindingGroups, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// Skipped reports whether the finding of an open store concerns a table, block or page that could not be read and
// was skipped.
func (f *Finding) Skipped() bool {
	switch f.Kind {
	case FindDamagedBlock, FindDamagedBlob, FindDamagedPage, FindMissingFile, FindFileSize, FindForeignTable:
		return f.Severity == Error && !f.Read && !f.Listing()
	}
	return false
}

// Listing reports whether the file of the finding only lists the tables and logs of a database.
func (f *Finding) Listing() bool {
	name := path.Base(f.Place.File)
	return name == "CURRENT" || strings.HasPrefix(name, "MANIFEST-")
}

// consequences are the kinds that appear where rows of a record, or the deletions of older ones, are missing.
var consequences = []string{"count-mismatch", "size-mismatch", "orphan-rows", "deleted-rows", "newer-version", "list-broken-link",
	"list-prev-mismatch", "list-unreachable-node", "list-tail-mismatch", "list-next-seq", "list-missing-index", "list-outside-bounds",
	"list-bounds", "zset-missing-member-row", "zset-missing-score-row", "zset-score-mismatch", "zset-twin", "stream-length",
	"stream-bounds", "stream-last-id", "stream-group-mismatch", "module-mismatch", "missing-ttl-row", "stale-ttl-rows"}

// Causes reports whether other findings may follow from this one: files, or parts of them, were not read.
func (f *Finding) Causes() bool {
	k, ok := FindingKindOf(f.Kind)
	return ok && k.Group == "files" && f.Severity == Error && f.Place.File != "" && f.Kind != FindStoreNotRead
}

// Follows reports whether a finding may follow from missing rows.
func (f *Finding) Follows() bool { return slices.Contains(consequences, f.Kind) }

// unreadValues are the kinds of findings about a row or a value that was not read, or not to its end.
var unreadValues = []string{FindNewer, "aof-command", "damaged-value", "bad-key-length", "bad-row-key", "bad-value",
	"short-value", "unknown-row",
	"malformed-key", "malformed-value", "bad-segment", "unmerged-operand", "null-value", "colliding-keys"}

// readFiles are the kinds of findings about files whose rows are read all the same.
var readFiles = []string{FindKeyOrder, FindFileBounds, FindFileChecksum, FindForeignLog, FindLedger, FindStoreNotRead,
	FindDeleteCount, "manifest-behind", "swapped-databases", "library-differs", "missing-score-cf"}

// OfValue reports whether findings of a kind are about a row or a value that was not read, or not to its end.
func OfValue(kind string) bool { return slices.Contains(unreadValues, kind) }

// Loses reports whether something that the finding is about was not read.
func (f *Finding) Loses() bool {
	k, _ := FindingKindOf(f.Kind)
	return f.Severity == Error && !f.Read && !f.Listing() &&
		(OfValue(f.Kind) || k.Group == "files" && !slices.Contains(readFiles, f.Kind))
}

// FindingKindOf returns the description of a kind. It returns false if the kind is unknown.
func FindingKindOf(kind string) (FindingKind, bool) {
	i := slices.IndexFunc(findingKinds, func(k FindingKind) bool { return k.Kind == kind })
	if i < 0 {
		return FindingKind{}, false
	}
	return findingKinds[i], true
}
