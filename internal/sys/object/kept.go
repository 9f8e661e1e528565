package object

import (
	"sync"

	"kvferry/internal/sys/disk"
)

// kept stores fetched pieces of an object in a temporary file, for a second reader. After an error, such as a full disk,
// it is empty, and readers request pieces again.
type kept struct {
	piece int64 // size

	mu   sync.RWMutex
	file *disk.File // nil: it failed, or the file system was unmounted
	have []uint64   // a bit for each piece
}

// keptShare bounds the size of a kept object: one of so many parts of the free disk.
const keptShare = 2

// Keep keeps the pieces of an object that is too large for the cache.
func (h *handle) Keep(dir string) {
	c := h.f.cache
	if h.o == nil || h.o.size <= int64(c.max)*c.size/2 {
		return
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.o.kept.Load() != nil {
		return
	}
	file, err := disk.Temp(dir, "object")
	if err != nil {
		return
	}
	if space, err := disk.FreeSpace(disk.Dir(file.Name())); err != nil || h.o.size > space.Free/keptShare {
		file.Close()
		return
	}
	k := &kept{piece: c.size, file: file, have: make([]uint64, h.o.size/c.size/64+1)}
	h.f.spools = append(h.f.spools, k)
	h.o.kept.Store(k)
}

// has reports whether a piece is kept.
func (k *kept) has(n int64) bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.file != nil && k.have[n/64]>>(n%64)&1 == 1
}

// open returns the file, nil if there is none.
func (k *kept) open() *disk.File {
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.file
}

// put keeps a piece.
func (k *kept) put(n int64, b []byte) {
	file := k.open()
	if file == nil {
		return
	}
	if _, err := file.WriteAt(b, n*k.piece); err != nil {
		k.close()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.have[n/64] |= 1 << (n % 64)
}

// read reads bytes of one piece. It returns 0 after an error.
func (k *kept) read(p []byte, off int64) int {
	p = p[:min(int64(len(p)), k.piece-off%k.piece)]
	if file := k.open(); file != nil {
		if n, _ := file.ReadAt(p, off); n == len(p) {
			return n
		}
		k.close()
	}
	return 0
}

// close frees the disk.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}
