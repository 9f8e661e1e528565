package kvferry_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"kvferry"
	"kvferry/fixtures"
	"kvferry/record"
)

// bundled unpacks a database that comes with the project and returns its directory and a cleanup function.
func bundled(name string) (string, func()) {
	tmp, err := os.MkdirTemp("", "kvferry-example")
	if err != nil {
		log.Fatal(err)
	}
	dir, err := fixtures.Extract(name, tmp)
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(tmp) }
}

func ExampleOpen() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	d, err := kvferry.Open(context.Background(), dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	fmt.Println(d.Format(), d.Databases())
	// Output: nemo [0]
}

func ExampleDataset_Records() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	d, err := kvferry.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	for r, err := range d.Records(ctx, &kvferry.Filter{Match: []string{"s1:stale0"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s:", r.Type, r.Key)
		for e, err := range r.Elements() {
			if err != nil {
				log.Fatal(err)
			}
			switch r.Type {
			case record.Hash:
				fmt.Printf(" %s=%s", e.Name, e.Value)
			case record.ZSet:
				fmt.Printf(" %s=%v", e.Name, e.Score)
			case record.Set:
				fmt.Printf(" %s", e.Name)
			default:
				fmt.Printf(" %s", e.Value)
			}
		}
		fmt.Println()
	}
	// Output:
	// string s1:stale0: new string
	// hash s1:stale0: newf0=n shared=new value walf=in wal, new version
	// list s1:stale0: new0 new1 new2
	// set s1:stale0: newm shared
	// zset s1:stale0: newm=-3 shared=42.5
}

func ExampleDataset_Fingerprint() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	d, err := kvferry.Open(ctx, dir, &kvferry.Options{Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	f, err := d.Fingerprint(ctx, &kvferry.Filter{Types: []record.Type{record.Hash}})
	if err != nil {
		log.Fatal(err)
	}
	h := f.Parts()[record.Part{DB: "0", Type: record.Hash}]
	fmt.Println(h.Records, "hashes with", h.Elements, "fields")
	// Output: 102 hashes with 11323 fields
}

func ExampleVerify() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	v, err := kvferry.Verify(context.Background(), dir, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("errors:", v.Total(record.Error))
	// Output: errors: 0
}

func ExampleConvert() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	_, err := kvferry.Convert(ctx, dir, "pika4:"+filepath.Join(filepath.Dir(dir), "new"), nil)
	var loss *kvferry.LossError
	if !errors.As(err, &loss) {
		log.Fatal(err)
	}
	for _, l := range loss.Losses {
		if !l.Note {
			fmt.Println("refused:", l.Count, l.Kind)
		}
	}
	c, err := kvferry.Convert(ctx, dir, "pika3:"+filepath.Join(filepath.Dir(dir), "new"), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Records, "records, proved:", c.Proved)
	// Output:
	// refused: 5 inner-nul
	// refused: 217 same-name
	// 548 records, proved: true
}
