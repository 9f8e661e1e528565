package store

import (
	"container/list"
	"sync"
)

// Hot keeps blocks that lookups have read: those used last, up to Max bytes. Stores share it; nil keeps nothing.
type Hot struct {
	Max int64

	mu    sync.Mutex
	size  int64
	at    map[hotPlace]*list.Element
	order list.List // of *hotBlock, longest unused first
}

// hotPlace is the offset of a block in a table.
type hotPlace struct {
	table any
	off   uint64
}

type hotBlock struct {
	hotPlace
	block any
	size  int64
}

// Get returns the block at an offset of a table; nil if it is not kept.
func (h *Hot) Get(table any, off uint64) any {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.at[hotPlace{table, off}]
	if e == nil {
		return nil
	}
	h.order.MoveToBack(e)
	return e.Value.(*hotBlock).block
}

// Wants reports whether a block of size bytes is small enough to keep.
func (h *Hot) Wants(size int) bool { return h != nil && int64(size) <= h.Max/16 }

// Put keeps a block of size bytes. It must not change any more.
func (h *Hot) Put(table any, off uint64, block any, size int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := hotPlace{table, off}
	if h.at[at] != nil {
		return
	}
	if h.at == nil {
		h.at = map[hotPlace]*list.Element{}
	}
	h.at[at] = h.order.PushBack(&hotBlock{at, block, size})
	for h.size += size; h.size > h.Max; {
		old := h.order.Remove(h.order.Front()).(*hotBlock)
		delete(h.at, old.hotPlace)
		h.size -= old.size
	}
}
