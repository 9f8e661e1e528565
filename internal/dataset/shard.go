package dataset

import "kvferry/record"

// Writer writes the rows of one type of a shard.
type Writer interface {
	comparable
	// Close finishes its runs. After an error Abort is still to be called.
	Close() error
	// Abort drops what is not closed.
	Abort()
}

// Shard is one span of a database being written: the writers of those types that have come.
type Shard[W Writer] struct {
	DB      *TargetDB
	N       int
	Memory  int64 // that each writer may use
	Writers [record.NumTypes]W
}

// NewShard returns a shard without writers. Its types share the memory.
func NewShard[W Writer](t *Target, n int, db string, types record.TypeSet, memory int64) (Shard[W], error) {
	d, err := t.DB(db)
	if memory <= 0 {
		memory = DefaultMemory
	}
	return Shard[W]{DB: d, N: n, Memory: memory / int64(max(1, len(types.Types())))}, err
}

// Close finishes all runs. After an error they are aborted.
func (s *Shard[W]) Close() error {
	var none W
	for _, w := range s.Writers {
		if w == none {
			continue
		}
		if err := w.Close(); err != nil {
			s.Abort()
			return err
		}
	}
	return nil
}

// Abort drops all runs.
func (s *Shard[W]) Abort() {
	var none W
	for _, w := range s.Writers {
		if w != none {
			w.Abort()
		}
	}
}
