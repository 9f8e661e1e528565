package dataset

import "kvferry/record"

// KeepIf keeps the elements for which keep is true, in place; it moves no element before the first dropped one.
func KeepIf(batch []record.Element, keep func(*record.Element) bool) []record.Element {
	n := 0
	for i := range batch {
		if !keep(&batch[i]) {
			continue
		}
		if n != i {
			batch[n] = batch[i]
		}
		n++
	}
	return batch[:n]
}

// KeepMembers drops expired members and clears the expiry of the others. It returns the number of kept members and how
// many of them had an expiry.
func KeepMembers(batch []record.Element, now int64) (n int, expiring int64) {
	for i := range batch {
		e := &batch[i]
		if e.ExpireMS != 0 && e.ExpireMS < now {
			continue
		}
		if e.ExpireMS != 0 {
			e.ExpireMS = 0
			expiring++
		}
		batch[n] = *e
		n++
	}
	return n, expiring
}

// MembersDetail returns the text of a finding about members that lose their expiry.
func MembersDetail(n int64) string {
	return record.Count(n, "member") + " will expire on the server; records have no place for that"
}
