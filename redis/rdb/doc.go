// Package rdb reads RDB files of Redis and Valkey: it splits them into items and decodes values. It also writes the
// framing around values; package encode encodes the values.
//
//	"REDIS" vvvv | ( opcode … | key )* | FF | crc64 LE, from version 5 on
//	"VALKEY" vvv                                        since version 80
//
// A key is any of {expiry, idle time, frequency, module metadata}, then type | string key | value. A Scanner delimits
// values without decoding them; a Decoder decodes a value to elements. Every length and count is checked against the
// remaining bytes before use.
//
//	length   00xxxxxx: 6 bits; 01xxxxxx b: 14 bits; 80 + u32 BE; 81 + u64 BE
//	string   length, bytes; or C0 int8, C1 int16 LE, C2 int32 LE: their decimal text; or C3 length of what is there,
//	         length of what it unpacks to, LZF
//	double   8 bytes LE; as text: a byte of length and ASCII; 253 nan, 254 inf, 255 -inf
package rdb
