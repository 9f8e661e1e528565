package record

// Rows are the rows of a record in its source.
type Rows struct {
	Of                 *Places
	Meta, Elems, Index int64 // rows of the record as a whole, of single elements, and of an index of them
}

// Places are the keyspaces of rows, as in the ledger; "" if the rows there are not counted.
type Places struct{ Meta, Elems, Index string }

// Books count the rows of records by class. They are the only way from a record to the ledger.
type Books struct {
	accounts map[*Places]*account
	of       *Places
	last     *account // of of
}

type account struct{ meta, elems, index Tally }

// Add counts the rows of a record that has ended.
//
// A record that is written keeps a row in its class, so that no fewer rows are copied than records are written: readers
// give it a row for each element that can be lost, and either a row of its own or no more lost rows than elements, of
// which a written record keeps one.
func (b *Books) Add(r *Record) {
	if r.Rows.Of == nil {
		return
	}
	if b.of != r.Rows.Of {
		b.open(r.Rows.Of)
	}
	a, n := b.last, &r.Rows
	if r.Class != Copied && r.Class != Skipped || r.Gone|r.Lost == 0 {
		a.meta.Rows[r.Class] += n.Meta
		a.elems.Rows[r.Class] += n.Elems
		a.index.Rows[r.Class.ofIndex()] += n.Index
		return
	}
	gone := min(r.Gone, n.Elems)
	lost, index := min(r.Lost, n.Elems-gone), min(r.Lost, n.Index)
	a.meta.Rows[r.Class] += n.Meta
	a.elems.Rows[Expired] += gone
	a.elems.Rows[Lost] += lost
	a.elems.Rows[r.Class] += n.Elems - gone - lost
	a.index.Rows[Lost] += index
	a.index.Rows[r.Class.ofIndex()] += n.Index - index
}

func (b *Books) open(p *Places) {
	if b.accounts == nil {
		b.accounts = map[*Places]*account{}
	}
	if b.accounts[p] == nil {
		b.accounts[p] = new(account)
	}
	b.of, b.last = p, b.accounts[p]
}

// AddEnded counts the records that end in a batch.
func (b *Books) AddEnded(batch *Batch) {
	for i := range batch.Records {
		if batch.Ends(i) {
			b.Add(&batch.Records[i])
		}
	}
}

// Close adds the counts to a ledger, which may be nil.
func (b *Books) Close(l *Ledger) {
	for p, a := range b.accounts {
		for name, t := range map[*string]*Tally{&p.Meta: &a.meta, &p.Elems: &a.elems, &p.Index: &a.index} {
			if *name != "" {
				l.Add(*name, t)
			}
		}
	}
	*b = Books{}
}

// Booked returns a reader of r that counts each record in a ledger when the user asks for the following batch: by the
// classes that records have by then.
func Booked(r Reader, l *Ledger) Reader {
	if l == nil {
		return r
	}
	return &booked{r: r, ledger: l}
}

type booked struct {
	r      Reader
	ledger *Ledger
	books  Books
	batch  *Batch
}

// Next counts the last batch.
func (b *booked) Next() (*Batch, error) {
	b.bookRows()
	next, err := b.r.Next()
	if err != nil {
		return nil, err
	}
	b.batch = next
	return next, nil
}

func (b *booked) bookRows() {
	if b.batch != nil {
		b.books.AddEnded(b.batch)
		b.batch = nil
	}
}

// Close counts the last batch and closes the reader.
func (b *booked) Close() error {
	b.bookRows()
	b.books.Close(b.ledger)
	return b.r.Close()
}
