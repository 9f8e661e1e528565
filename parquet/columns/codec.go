package columns

import (
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// Entropy coding takes a third of the time, and random values gain nothing from it. One of probe pages is compressed with and
// without it; the next ones use the better way.
const probe = 16

// encoders compress pages. Pages are small, so these need a small window; those of the library have 8 MiB each.
var encoders, flatEncoders sync.Pool

// columnCodec compresses the pages of a column of a file.
type columnCodec struct {
	compress.Codec
	pages int
	flat  bool // without entropy coding
}

// Compressions are the names of the ways to compress a file: the smallest first, the fastest last.
var Compressions = []string{"zstd", "snappy", "none"}

// codecOf returns what compresses a column.
func codecOf(compression string) compress.Codec {
	switch compression {
	case "snappy":
		return &parquet.Snappy
	case "none":
		return &parquet.Uncompressed
	}
	return &columnCodec{Codec: &parquet.Zstd}
}

// Encode compresses src into dst.
func (c *columnCodec) Encode(dst, src []byte) ([]byte, error) {
	try := c.pages%probe == 0
	c.pages++
	if !try {
		return encode(dst, src, c.flat)
	}
	flat, err := encode(nil, src, true)
	if err == nil {
		dst, err = encode(dst, src, false)
	}
	if err != nil {
		return nil, err
	}
	c.flat = len(flat)-len(dst) <= len(dst)/100
	if len(flat) < len(dst) {
		dst = append(dst[:0], flat...)
	}
	return dst, nil
}

func encode(dst, src []byte, flat bool) ([]byte, error) {
	pool := &encoders
	if flat {
		pool = &flatEncoders
	}
	z, _ := pool.Get().(*zstd.Encoder)
	if z == nil {
		var err error
		z, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(PageBytes), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true),
			zstd.WithNoEntropyCompression(flat))
		if err != nil {
			return nil, err
		}
	}
	defer pool.Put(z)
	return z.EncodeAll(src, dst[:0]), nil
}
