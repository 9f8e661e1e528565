package record

import (
	"cmp"
	"slices"
)

// Kinds of findings about files and rows that do not depend on a format. The formats name theirs
// themselves; FindingKinds lists them all.
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
	FindLedger          = "ledger-mismatch"
	FindCircularOrder   = "circular-order"
	FindKeyTwice        = "key-twice"
	FindRefusedRead     = "refused-read"
)

// FindingKind describes a kind of finding, for docs/findings.md and the rules of a SARIF report.
type FindingKind struct {
	Kind     string
	Severity Severity // the gravest it comes with
	Group    string   // what it is about, one of FindingGroups
	Text     string   // one sentence
}

var findingKinds = []FindingKind{
	{FindDamagedBlock, Error, "files", "A block fails its checksum, cannot be unpacked or holds what no block can hold. Its rows are missing, between the keys that are named, or all of a table whose footer, metaindex, properties or dictionary it is; those of older tables, deleted or changed since, may show in their place. A warning for what rows do not need: filters, and the metaindex of LevelDB."},
	{FindDamagedBlob, Error, "files", "A value in a blob file fails its checksum or is not what its row refers to. Its row is missing; older rows of its key stay hidden. A warning for what no row needs: the file's footer, and values that are garbage."},
	{FindDamagedFile, Error, "files", "A file cannot be read to its end or its header is damaged: a MANIFEST, a log with a damaged record, an LMDB file."},
	{FindDamagedPage, Error, "files", "A page of an LMDB file holds what no page can hold, or a node of it what no node can; its rows, or all below it, are missing."},
	{FindDeleteCount, Warning, "files", "A table holds another number of tombstones than its properties say."},
	{FindEntryCount, Error, "files", "A table holds another number of entries than its properties say."},
	{FindFileBounds, Error, "files", "A table holds a key outside the bounds that the MANIFEST gives it, so lookups miss it."},
	{FindFileSize, Error, "files", "A table has another size than the MANIFEST says, as when it was cut off. Its rows are missing, as of a damaged block."},
	{FindForeignTable, Error, "files", "A table is not the one that the MANIFEST names, although it has the same name and size: its first or last key or its unique id is another. Its rows are of another dataset or of another time, and are not read; those that belong there are missing, as of a damaged block."},
	{FindForeignLog, Error, "files", "A log is not the one that belongs to the tables: it has sequence numbers that tables or another log had already. It is a copy, of another time or of another dataset. A warning when numbers go back within one log."},
	{FindLastSequence, Warning, "files", "A RocksDB database that has rows and was never written to: its last sequence number is 0. While a snapshot of such a database is held, as SCAN and KEYS take them, a compaction drops every row. Earlier versions of kvferry wrote such databases; converting one to its own format mends it."},
	{FindLogGap, Error, "files", "Sequence numbers are missing within a log, between logs, between the tables and the first log, or behind the last one: a log was lost, cut off or replaced, or the machine failed before its end was on the disk. A warning when tables may have them."},
	{FindKeyOrder, Error, "files", "Rows of a table are not in the order of the database's comparator; the engine misses some."},
	{FindKeyTwice, Warning, "rows", "A key is in the tree of an LMDB file more than once, as a stock Ardb server leaves it that was started again and wrote to a key that it did not find. The row that the server's own search finds is taken, where it finds none the first one in the tree."},
	{FindLedger, Error, "files", "The rows read do not add up to the rows classified: a fault of this program."},
	{"lmdb-meta-page", Warning, "files", "One of the two meta pages of an LMDB file is damaged; the other was used."},
	{FindMissingFile, Error, "files", "A file that the database needs is not there. The rows of a table are missing, as of a damaged block, and those whose values are in a blob file; without CURRENT or MANIFEST nothing of the store is read."},
	{"no-log", Warning, "files", "No log follows the MANIFEST: a checkpoint has none, but of other copies the last writes are missing."},
	{"overlapping-tables", Warning, "files", "Two tables of a level that must be disjoint overlap; the engine trusts them not to and may miss rows."},
	{"row-order", Warning, "files", "An LMDB file is not in the order of Ardb's comparator, as the stock server leaves it; it was sorted."},
	{FindRefusedRead, Warning, "files", "The disk refused to give bytes, and gave them when it was asked again: it, or what connects it, is failing. Nothing is missing."},
	{FindStoreNotRead, Error, "files", "There is a store below the source that the format does not look for; what it holds is not read."},
	{"torn-log", Warning, "files", "The last log ends within a record, as a crash leaves it; what comes before was used. Or a log begins with zeros, ends in zeros that no engine sets aside, or holds nothing but what an older use of the file left. A note when a log ends in zeros as engines set them aside, or a power failure leaves them."},
	{"manifest-behind", Error, "files", "A table that the MANIFEST does not name has rows that no other table and no log has: the MANIFEST lost its end. A warning when the table cannot tell, as one that was never finished."},
	{"torn-manifest", Error, "files", "The MANIFEST ends within a record or a group of edits; the tables that the rest named are not read. A warning when no other table has rows of its own, as after a crash."},
	{FindUnorderedTable, Warning, "files", "A table was sorted before it was read; key-order says what is wrong."},
	{"unreferenced-table", Note, "files", "A table is there that the MANIFEST does not name; it is of no use any more, or what it holds is in other tables or the logs, as after a kill."},
	{"unknown-family", Warning, "files", "There is a column family that Kvrocks does not know, with which it does not start."},
	{"unreferenced-blobs", Note, "files", "A blob file is there that the MANIFEST does not name; it is of no use any more, or was never finished, as after a kill."},
	{FindUnreadRows, Error, "files", "Records could not be read, for a reason that is no damage of a file."},
	{FindUnreadableStore, Error, "files", "A store cannot be opened."},
	{"aof-command", Error, "rows", "A command of an append-only file whose effect is not known, such as a script, was passed over: any later key may be wrong; convert calls the loss aof-command. Or what it made may differ in the last bits, as distances of places do."},
	{"aof-cut", Warning, "files", "The last command of an append-only file is not whole, or a MULTI has no EXEC, as after a crash; a server cuts it off, and it does not count."},
	{"aof-damaged", Error, "files", "There are bytes in an append-only file that are no command; what follows is not read."},
	{"aof-module-aux", Warning, "files", "A module keeps data beside its keys in the RDB part of an append-only file, which are not read."},
	{"aof-refused", Note, "rows", "Commands of an append-only file are answered with an error when they are replayed, as by a server, which passes over them too."},
	{"damaged-value", Error, "rows", "The value of a key in an RDB file cannot be decoded; what comes before the damage in it is read, and so are the keys behind it."},
	{"duplicate-key", Error, "rows", "A key stands in an RDB file more than once; the first is read. Servers do not load such a file."},
	{"stream-length", Warning, "rows", "A stream in an RDB file says another number of entries than it holds."},
	{"unread-metadata", Warning, "rows", "Modules keep metadata with keys of an RDB file, which records do not have."},
	{"bad-key-length", Error, "rows", "The length of the user key in a row's key is beyond the key's end."},
	{"bad-row-key", Error, "rows", "What follows the user key in a row's key is not what rows of its kind have."},
	{"bad-value", Error, "rows", "A value is longer than its fixed part, or holds what cannot be."},
	{"short-value", Error, "rows", "A value is shorter than its fixed part."},
	{"unknown-row", Error, "rows", "A row's key is of no kind that the format has."},
	{"malformed-key", Error, "rows", "An Ardb row's key cannot be decoded, or has elements of the wrong kind."},
	{"malformed-value", Error, "rows", "An Ardb row's value cannot be decoded, or is not what a row of its kind has."},
	{"unknown-type", Error, "rows", "A Kvrocks metadata row is of a type that no server has."},
	{"slot-mismatch", Error, "rows", "The slot in a row's key, of a node of a Kvrocks cluster, is not that of the user key; the server does not find it."},
	{"bad-segment", Error, "rows", "A segment of a bitmap or a HyperLogLog has a number or a length that none can have. A warning when it lies behind the end or is longer than what counts."},
	{"short-segment", Note, "rows", "A segment of a Kvrocks bitmap ends early; BITPOS of bits behind its end stops the server."},
	{"unmerged-operand", Error, "rows", "A merge operand stands where a value should be."},
	{"empty-value", Warning, "rows", "A META row has no value, as RocksDB leaves it of a lone merge operand; the key does not exist."},
	{"unused-rows", Warning, "rows", "There are rows where the server never looks."},
	{"int-namespace", Note, "rows", "A namespace was written as an integer by MOVE; no client can select it."},
	{"count-mismatch", Error, "collections", "The count in a meta row is not the number of live rows."},
	{"size-mismatch", Warning, "collections", "The size in an Ardb META row is not the number of its rows; ranges are cut by it."},
	{"orphan-rows", Warning, "collections", "There are data rows of a key that has no meta row; no reader shows them."},
	{"deleted-rows", Warning, "collections", "A meta row says that the collection is empty, yet rows of its version are there."},
	{"newer-version", Warning, "collections", "Data rows have a newer version than their meta row; no reader shows them."},
	{"hidden-version", Note, "collections", "The version ends in the byte FF, so the engine lists the collection as empty although its rows are sound."},
	{"colliding-keys", Error, "rows", "Two rows have the user key of one record: Pika 4.0 does not write the end of keys with a NUL in them. The second is not read."},
	{"truncated-key", Error, "rows", "The end of a key is not on disk: Pika 4.0 does not write what follows the last NUL. It is read as far as it goes."},
	{"wrong-instance", Error, "collections", "A key is not in the instance of Pika 4.0 that its slot says, where the server looks for it. It is read, unless the right instance has it too."},
	{"slot-number", Note, "collections", "Keys are spread over the instances of Pika 4.0 by another default-slot-num than the shipped one."},
	{"missing-store", Error, "collections", "One of the directories that the format always has is not there."},
	{"missing-score-cf", Error, "collections", "The zsets have no score_cf; the engine does not open them."},
	{"stream-groups", Warning, "collections", "There are consumer groups and pending entries, which records do not have."},
	{"future-version", Note, "collections", "The version of a Kvrocks key was made by a clock ahead of this one."},
	{"long-bitmap", Note, "collections", "A Kvrocks bitmap is longer than what is read as a string; it is a value of its server's own."},
	{"module-mismatch", Error, "collections", "The rows of a Kvrocks Bloom filter or t-digest are not those that its metadata row tells of."},
	{"stream-bounds", Error, "collections", "An entry of a stream is beyond the last generated id. A warning when only the first or last id in the metadata row is another."},
	{"stream-group-mismatch", Error, "collections", "There are rows of a consumer group that is not there. A warning when a group counts other consumers or pending entries than there are."},
	{"stream-old-groups", Note, "collections", "Consumer groups are as Kvrocks before 2.10 keeps them; later servers do not know them."},
	{"left-behind", Note, "collections", "There are scripts, functions, tokens of namespaces or search indexes, which records do not have."},
	{"member-twice", Error, "collections", "A member or field is there as an integer and as a string; the integer is kept."},
	{"not-canonical", Warning, "collections", "An integer is stored as a string where the server looks for an integer, and does not find it."},
	{"negative-expiry", Note, "collections", "A string's expiry is negative, which the engine takes for never."},
	{"bad-expiry", Warning, "collections", "An expiry lies before 1970, which the server takes for never."},
	{"stale-ttl-rows", Note, "collections", "Rows of the TTL index do not match a key's expiry; the server leaves such rows behind."},
	{"missing-ttl-row", Note, "collections", "A key with an expiry is not in the TTL index: it is hidden when it expires, but never removed."},
	{FindCircularOrder, Warning, "collections", "Integers in the keys of a collection's rows, deleted ones among them, are 2^63 or more apart, which Ardb's comparator orders in a circle: its lookups and deletes miss rows."},
	{"list-broken-link", Error, "lists", "A list's head or a node's next names a node that is not there; what the links lead to behind it, and from the other end backwards, is read too."},
	{"list-prev-mismatch", Error, "lists", "A node's prev is not the node before it."},
	{"list-cycle", Error, "lists", "A node's next is a node before it; what the links lead to from the other end, backwards, is read too."},
	{"list-unreachable-node", Error, "lists", "The links from the ends of a list do not lead to a node, not even over missing ones; readers of the list miss it."},
	{"list-tail-mismatch", Error, "lists", "The list's right is not its last node; RPUSH would lose it."},
	{"list-next-seq", Error, "lists", "The next number to be given to a node is in use; the next push would overwrite a node."},
	{"list-missing-index", Error, "lists", "An index between the bounds of a list has no row."},
	{"list-outside-bounds", Error, "lists", "A row's index is not between the bounds of its list; no reader shows it."},
	{"list-bounds", Warning, "lists", "The bounds in an Ardb list's META row are not those of its rows."},
	{"list-order", Error, "lists", "Rows of a list are not in the order of their indexes."},
	{"stream-last-id", Error, "collections", "A stream has an entry beyond the last id that its meta row names; XADD would take the id again."},
	{"zset-missing-member-row", Error, "zsets", "A member has a row by score and none by member: it is found by rank only."},
	{"zset-missing-score-row", Error, "zsets", "A member has a row by member and none by score: it has no rank."},
	{"zset-score-mismatch", Error, "zsets", "A member's two rows have different scores."},
	{"zset-bad-score", Error, "zsets", "A score is not a number or beyond what the engine accepts."},
	{"zset-twin", Error, "zsets", "A member of an Ardb sorted set has a score row without a sort row, or the reverse."},
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

// Skipped reports whether the finding of an open store is of a table, block or page that could not be read and was
// passed over.
func (f *Finding) Skipped() bool {
	switch f.Kind {
	case FindDamagedBlock, FindDamagedBlob, FindDamagedPage, FindMissingFile, FindFileSize, FindForeignTable:
		return f.Severity == Error
	}
	return false
}

// FindingKindOf returns the description of a kind; false when there is none.
func FindingKindOf(kind string) (FindingKind, bool) {
	i := slices.IndexFunc(findingKinds, func(k FindingKind) bool { return k.Kind == kind })
	if i < 0 {
		return FindingKind{}, false
	}
	return findingKinds[i], true
}
