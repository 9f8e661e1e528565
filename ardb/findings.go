package ardb

import "kvferry/record"

// Kinds of findings.
const (
	// FindMalformedKey: a row key cannot be decoded, or has elements of the wrong kind.
	FindMalformedKey = "malformed-key"
	// FindMalformedValue: a value cannot be decoded, or is wrong for its kind of row.
	FindMalformedValue = "malformed-value"
	// FindUnmergedOperand: a merge operand in place of a value: the store did not fold it.
	FindUnmergedOperand = "unmerged-operand"
	// FindEmptyValue: a META row without a value, as RocksDB leaves of a lone operand; the key does not exist.
	FindEmptyValue = "empty-value"
	// FindOrphanRows: element rows without a META row, or of a type other than META's.
	FindOrphanRows = "orphan-rows"
	// FindSizeMismatch: the size of a list or sorted set differs from the number of its rows; the server cuts
	// ranges by it.
	FindSizeMismatch = "size-mismatch"
	// FindListBounds: the bounds in a list's META row differ from its rows.
	FindListBounds = "list-bounds"
	// FindListOrder: list rows whose order differs from the order of their indexes.
	FindListOrder = "list-order"
	// FindZSetTwin: a member of a sorted set has a score row without a sort row, or the reverse.
	FindZSetTwin = "zset-twin"
	// FindScoreNaN: a score is not a number.
	FindScoreNaN = "score-nan"
	// FindNotCanonical: an integer stored as a string where the server looks for an integer.
	FindNotCanonical = "not-canonical"
	// FindMemberTwice: a member exists both as an integer and as a string; the integer is kept.
	FindMemberTwice = "member-twice"
	// FindStreamGroups: consumer groups and pending entries, which kvferry does not read from Ardb. In a
	// conversion it is a loss of the same name, record.LossStreamGroups.
	FindStreamGroups = "stream-groups"
	// FindBadExpiry: an expiry before 1970, which the server reads as never.
	FindBadExpiry = "bad-expiry"
	// FindRowOrder: an LMDB file is not in the comparator's order, as the stock server leaves it.
	FindRowOrder = "row-order"
	// FindIntNamespace: a namespace that MOVE wrote as an integer, which no client can select.
	FindIntNamespace = "int-namespace"
	// FindUnusedRows: rows in RocksDB's default column family, which the server does not read.
	FindUnusedRows = "unused-rows"
	// FindStaleTTL: rows of the TTL index that do not match a key's expiry; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindMissingTTL: keys with an expiry that are not in the TTL index: hidden, but never collected.
	FindMissingTTL = "missing-ttl-row"
)

// kindOf returns the kind of finding of an error: kind, unless the row has an unknown form.
func kindOf(kind string, err error) string {
	if record.IsNewer(err) {
		return record.FindNewer
	}
	return kind
}
