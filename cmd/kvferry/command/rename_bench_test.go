package command

import (
	"fmt"
	"path/filepath"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/nemo"
	"kvferry/record"
)

// BenchmarkRename converts names that exist under two types.
func BenchmarkRename(b *testing.B) {
	for _, n := range []int{300, 3000, 30_000} {
		var records []small
		for i := range n {
			key := fmt.Sprintf("k%06d", i)
			records = append(records, smallRecord(record.String, key, "=v"), smallRecord(record.Hash, key, "f=v"))
		}
		src := buildSmall(b, nemo.New(), records...)
		for _, rename := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/rename=%t", n, rename), func(b *testing.B) {
				for i := range b.N {
					args := []string{"convert", "--no-prove", "--workers", "1", "--on-conflict", "keep=string", "--allow-loss", "same-name"}
					if rename {
						args = append(args[:4], "--on-conflict", "rename", "--allow-loss", "same-name")
					}
					args = append(args, src, "ardb:"+filepath.Join(b.TempDir(), fmt.Sprint(i)))
					if r := kvferry(b, args...); r.code != cli.ExitOK {
						b.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/name")
			})
		}
	}
}
