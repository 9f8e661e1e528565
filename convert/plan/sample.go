package plan

import (
	"bytes"
	"math"
	"slices"
	"sort"

	"kvferry/format"
	"kvferry/store"
)

const (
	// leastSample is how much of the types that the target keeps together is sampled, when there is so much.
	leastSample = 4 << 20
	// maxPlaces is at how many places they are sampled.
	maxPlaces = 32
	// cellsPerPlace is how many sampled keys there are to be in what is converted at a place.
	cellsPerPlace = 16
)

// Sample is a part of a plan: spans that are converted to see what the whole takes.
type Sample struct {
	Tasks []Task
	// Weights say how many times as much as a task the plan has of its kind: a sum over the tasks, each times its
	// weight, stands for the sum over the plan.
	Weights []float64
	Bytes   int64 // of the source that the tasks read
	Whole   bool  // the tasks are those of the plan
	least   int64 // of what is read at a place
}

// TakeSample chooses about so many bytes of a plan.
func TakeSample(src format.Source, p *Plan, budget int64) (*Sample, error) {
	s := &Sample{Whole: p.Bytes <= budget, least: max(min(leastSample, budget/8), 1)}
	for _, tasks := range pieces(p.Tasks) {
		if err := s.take(src, p, tasks, budget); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pieces divides the tasks of a plan into those of one database and set of types, which follow each other.
func pieces(tasks []Task) (out [][]Task) {
	for len(tasks) > 0 {
		n := 1
		for n < len(tasks) && tasks[n].DB == tasks[0].DB && tasks[n].Types == tasks[0].Types {
			n++
		}
		out, tasks = append(out, tasks[:n]), tasks[n:]
	}
	return out
}

// take chooses spans of a piece.
func (s *Sample) take(src format.Source, p *Plan, tasks []Task, budget int64) error {
	var size int64
	for i := range tasks {
		size += tasks[i].Bytes
	}
	want := max(int64(float64(budget)*float64(size)/float64(max(p.Bytes, 1))), min(size, s.least))
	var cells []cell
	if !s.Whole && want < size/2 {
		var err error
		n := float64(s.places(want)*cellsPerPlace) * float64(size) / float64(want)
		if cells, err = cellsOf(src, &tasks[0], int(min(n, 1<<16))); err != nil {
			return err
		}
	}
	if len(cells) < 2 {
		for i := range tasks {
			s.add(tasks[i], 1)
		}
		return nil
	}
	// Where cells are coarse, as sections of a file are, more places than fit would make the sample the whole.
	fraction := float64(want) / float64(size)
	places := max(min(s.places(want), int(fraction*float64(len(cells)))), 1)
	for _, x := range pick(cells, places, fraction) {
		t := tasks[0]
		t.Span, t.Bytes = x.span, int64(x.share*float64(size))
		s.add(t, x.weight)
	}
	return nil
}

// places is at how many places a piece is sampled.
func (s *Sample) places(want int64) int { return int(min(max(want/s.least, 1), maxPlaces)) }

func (s *Sample) add(t Task, weight float64) {
	t.N = len(s.Tasks)
	s.Tasks = append(s.Tasks, t)
	s.Weights = append(s.Weights, weight)
	s.Bytes += t.Bytes
}

// cell is a small span and the bytes in it.
type cell struct {
	span  format.Span
	bytes int64
}

// cellsOf cuts a piece, which the task is of, into about n small spans.
func cellsOf(src format.Source, t *Task, n int) ([]cell, error) {
	if s, ok := src.(format.Sectioned); ok {
		spans, err := s.Sections(t.DB, t.Types, n)
		return cut(spans, func(s format.Span) int64 { return s.To - s.From }), err
	}
	if w, ok := src.(format.Weighed); ok {
		keys, err := w.Weigh(t.DB, t.Types, n)
		return keyCells(keys), err
	}
	spans, err := src.Split(t.DB, t.Types, min(n, maxSpans))
	return cut(spans, func(format.Span) int64 { return 1 }), err
}

func cut(spans []format.Span, size func(format.Span) int64) (out []cell) {
	for _, s := range spans {
		out = append(out, cell{s, size(s)})
	}
	return out
}

// keyCells makes a span of each sampled key, up to the next one.
func keyCells(keys []store.Weighted) (out []cell) {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	for _, k := range keys {
		if n := len(out); n > 0 && bytes.Equal(out[n-1].span.Lo, k.Key) {
			out[n-1].bytes += k.Bytes
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].span.Hi = k.Key
		}
		out = append(out, cell{format.Span{Lo: k.Key}, k.Bytes})
	}
	if len(out) > 0 {
		out[0].span.Lo = nil
	}
	return out
}

// picked is a span of a sample.
type picked struct {
	span   format.Span
	share  float64 // of all bytes that are in it
	weight float64
}

// pick chooses spans at places that lie at equal distances, together a fraction of the whole. Each begins with the cell
// that its place is in, so that a large one is chosen as often as its size says; the weights make up for that.
func pick(cells []cell, places int, fraction float64) (out []picked) {
	starts := make([]int64, len(cells)+1)
	for i, c := range cells {
		starts[i+1] = starts[i] + max(c.bytes, 1)
	}
	all := float64(starts[len(cells)])
	end := 0 // of the span before
	for n := range places {
		place := int64((float64(n) + 0.5) / float64(places) * all)
		i := sort.Search(len(cells), func(i int) bool { return starts[i+1] > place })
		if i < end {
			out[len(out)-1].weight++
			continue
		}
		want := starts[i] + int64(math.Ceil(fraction*all/float64(places)))
		end = i
		for end < len(cells) && starts[end] < want {
			end++
		}
		span := cells[i].span
		span.Hi, span.To = cells[end-1].span.Hi, cells[end-1].span.To
		out = append(out, picked{span, float64(starts[end]-starts[i]) / all, 1})
	}
	for i := range out {
		out[i].weight /= out[i].share * float64(places)
	}
	return out
}
