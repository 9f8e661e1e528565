package record

import (
	"cmp"
	"slices"
)

// Kinds of findings about files and rows that do not depend on a format. The formats name theirs
// themselves; FindingKinds lists them all.
const (
	FindDamagedBlock    = "damaged-block"
	FindDamagedFile     = "damaged-file"
	FindMissingFile     = "missing-file"
	FindFileSize        = "file-size-mismatch"
	FindEntryCount      = "entry-count-mismatch"
	FindDeleteCount     = "delete-count-mismatch"
	FindKeyOrder        = "key-order"
	FindFileBounds      = "file-bounds"
	FindUnreadableStore = "unreadable-store"
	FindUnreadRows      = "unread-rows"
	FindLedger          = "ledger-mismatch"
)

// FindingKind describes a kind of finding, for docs/findings.md and the rules of a SARIF report.
type FindingKind struct {
	Kind     string
	Severity Severity // the gravest it comes with
	Group    string   // what it is about: files, rows, collections, lists, zsets
	Text     string   // one sentence
}

var findingKinds = []FindingKind{
	{FindDamagedBlock, Error, "files", "A block fails its checksum, cannot be unpacked or holds what no block can hold; its rows are lost."},
	{"damaged-page", Error, "files", "A page of an LMDB file holds what no page can hold; its rows are lost."},
	{FindDamagedFile, Error, "files", "A file cannot be read to its end, or its footer, index or header is damaged."},
	{FindDeleteCount, Warning, "files", "A table holds another number of tombstones than its properties say."},
	{FindEntryCount, Error, "files", "A table holds another number of entries than its properties say."},
	{FindFileBounds, Error, "files", "A table holds a key outside the bounds that the MANIFEST gives it, so lookups miss it."},
	{"overlapping-tables", Warning, "files", "Two tables of a level that must be disjoint overlap; the engine, which trusts them not to, may miss rows."},
	{FindFileSize, Error, "files", "A file has another size than the MANIFEST says."},
	{FindKeyOrder, Error, "files", "Rows are not in the order that the database's comparator gives them; the engine misses some."},
	{FindLedger, Error, "files", "The rows read do not add up to the rows classified; a fault of this program."},
	{"lmdb-meta-page", Warning, "files", "One of the two meta pages of an LMDB file is damaged; the other was used."},
	{FindMissingFile, Error, "files", "A file that the MANIFEST names is not there."},
	{"unreferenced-table", Note, "files", "A table is there that the MANIFEST does not name; it is not part of the database."},
	{"torn-manifest", Warning, "files", "The MANIFEST ends within a record, as a crash leaves it; what comes before was used."},
	{"torn-log", Warning, "files", "The last log ends within a record, as a crash leaves it; what comes before was used."},
	{FindUnreadRows, Error, "files", "Records could not be read because of damage that another finding names."},
	{FindUnreadableStore, Error, "files", "A store cannot be opened."},
	{"missing-store", Warning, "files", "One of the directories that the format always has is not there."},
}

// FindingKinds lists every kind of finding that the project reports, by group and name.
func FindingKinds() []FindingKind {
	out := slices.Clone(findingKinds)
	slices.SortFunc(out, func(a, b FindingKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// FindingKindOf returns the description of a kind; false when there is none.
func FindingKindOf(kind string) (FindingKind, bool) {
	i := slices.IndexFunc(findingKinds, func(k FindingKind) bool { return k.Kind == kind })
	if i < 0 {
		return FindingKind{}, false
	}
	return findingKinds[i], true
}
