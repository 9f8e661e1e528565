// Command gen makes nemo datasets of any size for benchmarks and tests of memory, from a
// seed and in little memory.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

func main() {
	if err := root(os.Stderr).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "kvferry-gen:", err)
		os.Exit(1)
	}
}

// memory is the limit of the target's buffers.
const memory = 128 << 20

func root(stderr io.Writer) *cobra.Command {
	var seed uint64
	var tableSize int64
	cmd := &cobra.Command{
		Use:   "kvferry-gen KIND DIR N",
		Short: "Make a nemo dataset of N elements in DIR, which must not exist",
		Long: `Make a nemo dataset of N elements in DIR, which must not exist. KIND is

  mix      40 % strings, 20 % hashes of 50, 15 % zsets and 15 % sets of 100, 10 % lists of 100
  zset, list, hash, set
           one record of that type
  linked   one list left by pushes at both ends and LINSERTs at random nodes
  records  N random records of all types, with keys and values at the edges`,
		Args:          cobra.ExactArgs(3),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[2], 10, 64)
			if err != nil || n <= 0 {
				return fmt.Errorf("%q elements: want a positive number", args[2])
			}
			began := time.Now()
			if err := generate(cmd.Context(), args[0], args[1], n, seed, tableSize); err != nil {
				return err
			}
			fmt.Fprintf(stderr, "%s: %s of %d elements, seed %d, in %s\n", args[1], args[0], n, seed,
				time.Since(began).Round(time.Millisecond))
			return nil
		},
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of everything random")
	cmd.Flags().Int64Var(&tableSize, "table-size", 0, "maximum bytes of a table; 0 for the size that kvferry convert writes")
	return cmd
}

func generate(ctx context.Context, kind, dir string, n int64, seed uint64, tableSize int64) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists", dir)
	}
	switch kind {
	case "linked":
		if n > 1<<31 {
			return fmt.Errorf("a list of %d nodes is too long", n)
		}
		return fixtures.NewLinked(seed, int(n)).Build(dir, build.Create)
	case "mix":
		return write(ctx, dir, tableSize, fixtures.Mix(seed, n).Build)
	case "records":
		return write(ctx, dir, tableSize, func(ctx context.Context, t format.Target, memory int64) error {
			return fixtures.BuildFrom(ctx, t, memory, func(set record.TypeSet) record.Reader {
				return fixtures.Records(seed, int(n), fixtures.Options{DB: "0", Types: set, Limits: nemo.New().Limits()})
			})
		})
	}
	t, err := record.ParseType(kind)
	if err != nil || !nemo.New().Limits().Types.Has(t) || t == record.String {
		return fmt.Errorf("unknown kind %q (see --help)", kind)
	}
	return write(ctx, dir, tableSize, fixtures.One(seed, t, n).Build)
}

// write creates a nemo dataset that fill fills.
func write(ctx context.Context, dir string, tableSize int64, fill func(context.Context, format.Target, int64) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	target, err := nemo.New().Create(ctx, dir, &format.CreateOptions{
		Create: build.Create,
		Build:  store.BuildOptions{TableSize: tableSize},
		Layout: format.LayoutFlat,
		DBs:    []string{"0"},
		Memory: memory,
		Now:    fixtures.Clock,
	})
	if err != nil {
		return err
	}
	return fill(ctx, target, memory)
}
