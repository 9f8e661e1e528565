// Package rdb reads RDB files of Redis and Valkey: cuts them into items and decodes values. What stands around values is
// written here, too; package encode makes the values.
//
//	"REDIS" vvvv | ( opcode … | key )* | FF | crc64 LE, from version 5 on
//	"VALKEY" vvv                                        since version 80
//
// A key is any of {expiry, idle time, frequency, metadata of modules}, then type | string key | value. A Scanner cuts
// values off without decoding them; a Decoder makes elements of one. Nothing that a file says is believed before it is
// compared with the bytes that are left.
//
//	length   00xxxxxx: 6 bits; 01xxxxxx b: 14 bits; 80 + u32 BE; 81 + u64 BE
//	string   length, bytes; or C0 int8, C1 int16 LE, C2 int32 LE: their decimal text; or C3 length of what is there,
//	         length of what it unpacks to, LZF
//	double   8 bytes LE; as text: a byte of length and ASCII; 253 nan, 254 inf, 255 -inf
package rdb
