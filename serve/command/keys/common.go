package keys

// commonRun is a common substring: the offsets of its last byte in both strings, and its length.
type commonRun struct{ A, B, Len int64 }

// commonSubsequence returns the longest common subsequence of two strings, and its runs from the last one. It needs 4 bytes for each
// pair of bytes.
func commonSubsequence(a, b []byte) (seq []byte, runs []commonRun) {
	width := len(b) + 1
	table := make([]uint32, (len(a)+1)*width)
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				table[i*width+j] = table[(i-1)*width+j-1] + 1
			} else {
				table[i*width+j] = max(table[(i-1)*width+j], table[i*width+j-1])
			}
		}
	}
	i, j := len(a), len(b)
	seq = make([]byte, table[len(table)-1])
	for at := len(seq); i > 0 && j > 0; {
		switch {
		case a[i-1] == b[j-1]:
			at--
			seq[at] = a[i-1]
			runs = before(runs, int64(i-1), int64(j-1))
			i, j = i-1, j-1
		case table[(i-1)*width+j] > table[i*width+j-1]:
			i--
		default:
			j--
		}
	}
	return seq, runs
}

// before adds a common byte that precedes the runs.
func before(runs []commonRun, a, b int64) []commonRun {
	if n := len(runs); n > 0 && runs[n-1].A-runs[n-1].Len == a && runs[n-1].B-runs[n-1].Len == b {
		runs[n-1].Len++
		return runs
	}
	return append(runs, commonRun{a, b, 1})
}
