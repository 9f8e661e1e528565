package redis

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"kvferry/internal/disk"
)

// hashes finds numbers that occur more than once. Past its memory they lie in a temporary file, in sorted runs.
type hashes struct {
	most    int // numbers in memory
	tempDir string
	held    []uint64
	file    *disk.File
	runs    []section
	buf     []byte
}

// hashLen is how many bytes a number has in a run.
const hashLen = 8

// defaultHashes is how much memory the numbers take if nothing says how much there is.
const defaultHashes = 16 << 20

func newHashes(memory int64, tempDir string) *hashes {
	if memory <= 0 {
		memory = defaultHashes
	}
	return &hashes{most: int(max(memory/hashLen, 1<<10)), tempDir: tempDir}
}

func (h *hashes) add(n uint64) error {
	if len(h.held) == h.most {
		if err := h.spill(); err != nil {
			return err
		}
	}
	h.held = append(h.held, n)
	return nil
}

// spill writes what is held as a run.
func (h *hashes) spill() (err error) {
	if h.file == nil {
		if h.file, err = disk.Temp(h.tempDir, "hashes"); err != nil {
			return err
		}
	}
	slices.Sort(h.held)
	run := section{}
	if n := len(h.runs); n > 0 {
		run.from = h.runs[n-1].to
	}
	run.to = run.from + int64(len(h.held))*hashLen
	h.runs = append(h.runs, run)
	for part := range slices.Chunk(h.held, 8<<10) {
		h.buf = h.buf[:0]
		for _, n := range part {
			h.buf = binary.LittleEndian.AppendUint64(h.buf, n)
		}
		if _, err := h.file.Write(h.buf); err != nil {
			return err
		}
	}
	h.held = h.held[:0]
	return nil
}

// twice returns the numbers that were added more than once, ascending.
func (h *hashes) twice() (out []uint64, err error) {
	if len(h.runs) == 0 {
		slices.Sort(h.held)
		for i := 1; i < len(h.held); i++ {
			if n := h.held[i]; n == h.held[i-1] && (len(out) == 0 || out[len(out)-1] != n) {
				out = append(out, n)
			}
		}
		return out, nil
	}
	if err := h.spill(); err != nil {
		return nil, err
	}
	h.held = nil
	return h.merge()
}

// run is a run that is read.
type run struct {
	section
	buf  []byte
	at   int
	head uint64
}

// next moves to the next number.
func (r *run) next(f *disk.File) error {
	if r.at == len(r.buf) {
		n := min(int64(cap(r.buf)), r.to-r.from)
		if n == 0 {
			return io.EOF
		}
		r.buf, r.at = r.buf[:n], 0
		if _, _, err := disk.ReadAt(f, r.buf, r.from); err != nil {
			return err
		}
		r.from += n
	}
	r.head = binary.LittleEndian.Uint64(r.buf[r.at:])
	r.at += hashLen
	return nil
}

// merge reads all runs in the order of their numbers.
func (h *hashes) merge() (out []uint64, err error) {
	room := min(max(h.most/len(h.runs), 64), 8<<10) * hashLen
	var heap []*run
	for _, s := range h.runs {
		r := &run{section: s, buf: make([]byte, 0, room)}
		if err := r.next(h.file); err == io.EOF {
			continue
		} else if err != nil {
			return nil, err
		}
		heap = append(heap, r)
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	var last uint64
	for first := true; len(heap) > 0; first = false {
		r := heap[0]
		if n := r.head; !first && n == last && (len(out) == 0 || out[len(out)-1] != n) {
			out = append(out, n)
		}
		last = r.head
		switch err := r.next(h.file); {
		case err == io.EOF:
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		case err != nil:
			return nil, err
		}
		sink(heap, 0)
	}
	return out, nil
}

// sink moves a run down to where those below it are not less.
func sink(heap []*run, i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
			if heap[c].head < heap[least].head {
				least = c
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

func (h *hashes) close() (err error) {
	if h.file != nil {
		err = errors.Join(err, h.file.Close())
		h.file = nil
	}
	h.held = nil
	return err
}
