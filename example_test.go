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
	"kvferry/inspect/compare"
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

// A function of the header selects records, after the other conditions.
func ExampleFilter() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	d, err := kvferry.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	short := &kvferry.Filter{Types: []record.Type{record.List}, Func: func(h *record.Header) bool {
		return len(h.Key) == 1 && h.Key[0] >= 'A' && h.Key[0] <= 'Z'
	}}
	for r, err := range d.Records(ctx, short) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %q\n", r.Type, r.Key)
	}
	// Output:
	// list "H"
	// list "L"
	// list "S"
	// list "Z"
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

// Pika 4 holds a name under one type only. Rename keeps the other records of such a key as name:type.
func ExampleConvert_rename() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	target := filepath.Join(filepath.Dir(dir), "new")
	_, err := kvferry.Convert(ctx, dir, "pika4:"+target, &kvferry.ConvertOptions{
		Filter:     &kvferry.Filter{Match: []string{"s1:stale0"}},
		OnConflict: kvferry.OnConflict{Rename: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	d, err := kvferry.Open(ctx, target, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	for r, err := range d.Records(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Type, string(r.Key))
	}
	// Output:
	// string s1:stale0
	// hash s1:stale0:hash
	// list s1:stale0:list
	// set s1:stale0:set
	// zset s1:stale0:zset
}

func ExampleDataset_Diff() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	target := filepath.Join(filepath.Dir(dir), "new")
	// A filter can be a function.
	_, err := kvferry.Convert(ctx, dir, "pika3:"+target, &kvferry.ConvertOptions{Filter: &kvferry.Filter{
		Types: []record.Type{record.Hash},
		Func:  func(h *record.Header) bool { return string(h.Key) != "s1:stale0" }}})
	if err != nil {
		log.Fatal(err)
	}
	a, err := kvferry.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := kvferry.Open(ctx, target, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	res, err := a.Diff(ctx, b, &kvferry.DiffOptions{
		Filter: &kvferry.Filter{Types: []record.Type{record.Hash}},
		Tell: func(d *compare.Difference) error {
			fmt.Println(d.Side, d.Header.Type, string(d.Header.Key))
			return nil
		}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("missing:", res.Missing, "extra:", res.Extra, "differing:", res.Differing)
	// Output:
	// missing hash s1:stale0
	// missing: 1 extra: 0 differing: 0
}

func ExampleDataset_Inspect() {
	dir, remove := bundled("nemo-basic")
	defer remove()
	ctx := context.Background()
	d, err := kvferry.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	s, err := d.Inspect(ctx, &kvferry.InspectOptions{Top: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Records(), "records; the largest:", string(s.TopBytes[0].Key))
	// Output: 548 records; the largest: s1:l1MB
}
