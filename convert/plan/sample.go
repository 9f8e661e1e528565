package plan

import (
	"bytes"
	"math"
	"slices"
	"sort"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/store"
)

const (
	// leastSample is the minimum sample of each set of types that the source reads together, if it is that large.
	leastSample = 4 << 20
	// maxPlaces limits the number of spans sampled from one set of types.
	maxPlaces = 32
	// cellsPerPlace is the desired number of sampled keys per span.
	cellsPerPlace = 16
)

// Sample is a part of a plan, converted to estimate the whole.
type Sample struct {
	Tasks []pass.Task
	// Weights scale the tasks to the plan: a sum over the tasks, each times its weight, estimates the sum over the
	// plan.
	Weights []float64
	Bytes   int64 // bytes of the source that the tasks read
	Whole   bool  // the tasks are those of the whole plan
	least   int64 // minimum bytes per span
}

// TakeSample chooses a sample of about budget bytes.
func TakeSample(src format.Source, p *Plan, budget int64) (*Sample, error) {
	s := &Sample{Whole: p.Bytes <= budget, least: max(min(leastSample, budget/8), 1)}
	for _, tasks := range pieces(p.Tasks) {
		if err := s.addPiece(src, p, tasks, budget); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pieces groups consecutive tasks with the same database and types.
func pieces(tasks []pass.Task) (out [][]pass.Task) {
	for len(tasks) > 0 {
		n := 1
		for n < len(tasks) && tasks[n].DB == tasks[0].DB && tasks[n].Types == tasks[0].Types {
			n++
		}
		out, tasks = append(out, tasks[:n]), tasks[n:]
	}
	return out
}

// addPiece samples a piece.
func (s *Sample) addPiece(src format.Source, p *Plan, tasks []pass.Task, budget int64) error {
	size := pass.Bytes(tasks)
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
	// Cells may be coarse, as sections of a file are. With too many spans of at least one cell, the sample would be
	// the whole.
	fraction := float64(want) / float64(size)
	places := max(min(s.places(want), int(fraction*float64(len(cells)))), 1)
	for _, x := range pick(cells, places, fraction) {
		t := tasks[0]
		t.Span, t.Bytes = x.span, int64(x.share*float64(size))
		s.add(t, x.weight)
	}
	return nil
}

// places returns the number of spans to sample from a piece.
func (s *Sample) places(want int64) int { return int(min(max(want/s.least, 1), maxPlaces)) }

func (s *Sample) add(t pass.Task, weight float64) {
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

// cellsOf cuts the piece of a task into about n small spans.
func cellsOf(src format.Source, t *pass.Task, n int) ([]cell, error) {
	if s, ok := format.As[format.Sectioned](src); ok {
		spans, err := s.Sections(t.DB, t.Types, n)
		return cut(spans, func(s format.Span) int64 { return s.To - s.From }), err
	}
	if w, ok := format.As[format.Weighed](src); ok {
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

// keyCells makes a cell of each sampled key, up to the next one.
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
	share  float64 // part of all bytes that the span covers
	weight float64
}

// pick chooses spans at equidistant byte offsets, together a fraction of the whole. Each span begins with the cell at
// its offset, so large cells are chosen in proportion to their size. The weights compensate for that.
func pick(cells []cell, places int, fraction float64) (out []picked) {
	starts := make([]int64, len(cells)+1)
	for i, c := range cells {
		starts[i+1] = starts[i] + max(c.bytes, 1)
	}
	all := float64(starts[len(cells)])
	end := 0 // of the previous span
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
