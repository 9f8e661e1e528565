#ifndef KVFERRY_GROCKS_COMPARE_H
#define KVFERRY_GROCKS_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "rocksdb/c.h"

/* The orders that the formats define, as RocksDB calls them: native, since a call into Go costs
 * more than the comparison. */
enum { KVF_LISTS, KVF_ZSETS, KVF_ARDB, KVF_FLOYD_LISTS, KVF_FLOYD_ZSETS, KVF_ORDERS };

/* kvf_name is the name of a comparator. */
const char *kvf_name(int which);

/* kvf_comparator makes a comparator object; RocksDB's options own it. */
rocksdb_comparator_t *kvf_comparator(int which);

/* kvf_compare compares two keys, for tests. */
int kvf_compare(int which, const char *a, size_t alen, const char *b, size_t blen);

/* kvf_rows copies rows from an iterator into buf and steps over them, until the next one does not
 * fit or there is none. Each row is
 *
 *   +----------------+------------------+-----+-------+
 *   | key length (4B)| value length (4B)| key | value |
 *   +----------------+------------------+-----+-------+
 *
 * in host order. It returns the bytes used; when not even one row fits, *need is its size. */
size_t kvf_rows(void *iter, char *buf, size_t cap, size_t *need);

#endif
