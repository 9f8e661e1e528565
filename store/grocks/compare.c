//go:build rocksdb

#include "compare.h"

#include <string.h>

static int sign(int a, int b) { return a < b ? -1 : a > b; }

static int cmp_bytes(const char *a, size_t alen, const char *b, size_t blen) {
  size_t n = alen < blen ? alen : blen;
  int c = n ? memcmp(a, b, n) : 0;
  if (c != 0) return c;
  return alen < blen ? -1 : alen > blen;
}

/* take cuts n bytes off the front of a key, fewer when it ends early. */
typedef struct {
  const char *p;
  size_t n;
} span;

static span take(span *s, size_t n) {
  span out = {s->p, n < s->n ? n : s->n};
  s->p += out.n;
  s->n -= out.n;
  return out;
}

static uint32_t le32(span s) {
  uint32_t v = 0;
  memcpy(&v, s.p, s.n < 4 ? s.n : 4);
  return v;
}

/* cmp_fixed compares two little-endian integers of the same width; one that ends early is first. */
static int cmp_fixed(span a, span b, size_t width, int is_signed) {
  if (a.n < width || b.n < width) return a.n < b.n ? -1 : a.n > b.n;
  uint64_t x = 0, y = 0;
  memcpy(&x, a.p, width);
  memcpy(&y, b.p, width);
  if (is_signed) return (int32_t)x < (int32_t)y ? -1 : (int32_t)x > (int32_t)y;
  return x < y ? -1 : x > y;
}

/* blackwidow lists/data_cf: klen, key, version, index. The key bytewise whatever its length, then
 * the version as int32, then the index as uint64. */
static int cmp_lists(const char *ap, size_t alen, const char *bp, size_t blen) {
  span a = {ap, alen}, b = {bp, blen};
  span alen4 = take(&a, 4), blen4 = take(&b, 4);
  if (alen4.n < 4 || blen4.n < 4) return cmp_bytes(ap, alen, bp, blen);
  span ak = take(&a, le32(alen4)), bk = take(&b, le32(blen4));
  int c = cmp_bytes(ak.p, ak.n, bk.p, bk.n);
  if (c != 0) return c;
  c = cmp_fixed(take(&a, 4), take(&b, 4), 4, 1);
  if (c != 0) return c;
  return cmp_fixed(take(&a, 8), take(&b, 8), 8, 0);
}

/* cmp_scored compares a score as a number and what follows bytewise. */
static int cmp_scored(span a, span b) {
  span as = take(&a, 8), bs = take(&b, 8);
  if (as.n < 8 || bs.n < 8) return cmp_bytes(as.p, as.n, bs.p, bs.n);
  double x, y;
  memcpy(&x, as.p, 8);
  memcpy(&y, bs.p, 8);
  if (x < y) return -1;
  if (x > y) return 1;
  int c = sign(x != x, y != y); /* the engine refuses NaN; here it is last, so that this is an order */
  return c != 0 ? c : cmp_bytes(a.p, a.n, b.p, b.n);
}

/* blackwidow zsets/score_cf: klen, key and version bytewise, then the score as a number, then the
 * member bytewise. */
static int cmp_zsets(const char *ap, size_t alen, const char *bp, size_t blen) {
  span a = {ap, alen}, b = {bp, blen};
  if (alen < 4 || blen < 4) return cmp_bytes(ap, alen, bp, blen);
  span ah = take(&a, 8 + (size_t)le32(a)), bh = take(&b, 8 + (size_t)le32(b));
  int c = cmp_bytes(ah.p, ah.n, bh.p, bh.n);
  if (c != 0) return c;
  return cmp_scored(a, b);
}

/* floyd_user returns the length of reserved bytes, escaped key and terminator (two zeros), 0 without one. */
static size_t floyd_user(const char *p, size_t n) {
  for (size_t i = 8; i + 1 < n; i++) {
    if (p[i] != 0) continue;
    if (p[i + 1] == 0) return i + 2;
    i++;
  }
  return 0;
}

/* cmp_floyd_heads compares user keys and versions, and takes them off; *done says that nothing is left to compare. */
static int cmp_floyd_heads(span *a, span *b, int *done) {
  size_t an = floyd_user(a->p, a->n), bn = floyd_user(b->p, b->n);
  *done = 1;
  if (an == 0 || bn == 0) return an || bn ? sign(an != 0, bn != 0) : cmp_bytes(a->p, a->n, b->p, b->n);
  span ak = take(a, an), bk = take(b, bn);
  int c = cmp_bytes(ak.p, ak.n, bk.p, bk.n);
  if (c != 0) return c;
  span av = take(a, 8), bv = take(b, 8);
  if (av.n < 8 || bv.n < 8) return av.n != bv.n ? sign((int)av.n, (int)bv.n) : cmp_bytes(av.p, av.n, bv.p, bv.n);
  *done = 0;
  return cmp_fixed(av, bv, 8, 0);
}

/* floyd list_data_cf: user key, version and index as uint64. */
static int cmp_floyd_lists(const char *ap, size_t alen, const char *bp, size_t blen) {
  span a = {ap, alen}, b = {bp, blen};
  int done, c = cmp_floyd_heads(&a, &b, &done);
  if (c != 0 || done) return c;
  span ai = take(&a, 8), bi = take(&b, 8);
  if (ai.n < 8 || bi.n < 8) return cmp_bytes(ai.p, ai.n, bi.p, bi.n);
  c = cmp_fixed(ai, bi, 8, 0);
  return c != 0 ? c : cmp_bytes(a.p, a.n, b.p, b.n);
}

/* floyd zset_score_cf: user key, version as uint64, score, the rest bytewise. */
static int cmp_floyd_zsets(const char *ap, size_t alen, const char *bp, size_t blen) {
  span a = {ap, alen}, b = {bp, blen};
  int done, c = cmp_floyd_heads(&a, &b, &done);
  return c != 0 || done ? c : cmp_scored(a, b);
}

/* uvarint reads a base-128 number; ok is cleared when the bytes end first. */
static uint64_t uvarint(span *s, int *ok) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    span c = take(s, 1);
    if (c.n == 0) break;
    v |= (uint64_t)(*c.p & 0x7f) << shift;
    if (!(*c.p & 0x80)) return v;
  }
  *ok = 0;
  return 0;
}

static int64_t varint(span *s, int *ok) {
  uint64_t v = uvarint(s, ok);
  return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* datum is an element of an ardb key. */
typedef struct {
  int rank; /* 0 nil, 1 number, 2 string */
  int is_int;
  int64_t i;
  double f;
  span s;
} datum;

static datum read_datum(span *s, int *ok) {
  datum d;
  memset(&d, 0, sizeof d);
  span tag = take(s, 1);
  switch (tag.n ? *tag.p : -1) {
    case 0:
      return d;
    case 1:
      d.rank = 1;
      d.is_int = 1;
      d.i = varint(s, ok);
      d.f = (double)d.i;
      return d;
    case 2: {
      d.rank = 1;
      int64_t bits = varint(s, ok);
      memcpy(&d.f, &bits, 8);
      return d;
    }
    case 3:
    case 4: {
      d.rank = 2;
      uint64_t n = uvarint(s, ok);
      if (n > s->n) *ok = 0;
      d.s = take(s, n);
      return d;
    }
  }
  *ok = 0;
  return d;
}

static int cmp_datum(datum a, datum b) {
  if (a.rank != b.rank) return sign(a.rank, b.rank);
  if (a.rank == 2) return cmp_bytes(a.s.p, a.s.n, b.s.p, b.s.n);
  if (a.rank == 0) return 0;
  if (a.is_int && b.is_int) { /* the server's own compare wraps */
    int64_t d = (int64_t)((uint64_t)a.i - (uint64_t)b.i);
    return d < 0 ? -1 : d > 0;
  }
  return a.f < b.f ? -1 : a.f > b.f;
}

/* ardb on RocksDB: key, type, and for all but META rows the number of elements and the elements. */
static int cmp_ardb(const char *ap, size_t alen, const char *bp, size_t blen) {
  span a = {ap, alen}, b = {bp, blen};
  int ok = 1;
  uint64_t an = uvarint(&a, &ok), bn = uvarint(&b, &ok);
  if (!ok || an > a.n || bn > b.n) return cmp_bytes(ap, alen, bp, blen);
  span ak = take(&a, an), bk = take(&b, bn);
  int c = cmp_bytes(ak.p, ak.n, bk.p, bk.n);
  if (c != 0) return c;
  span at = take(&a, 2), bt = take(&b, 2); /* type, count */
  if (at.n < 2 || bt.n < 2) return cmp_bytes(at.p, at.n, bt.p, bt.n);
  c = sign((unsigned char)at.p[0], (unsigned char)bt.p[0]);
  if (c != 0 || at.p[0] == 1) return c;
  c = sign((signed char)at.p[1], (signed char)bt.p[1]);
  for (int i = 0; c == 0 && i < (signed char)at.p[1]; i++) {
    datum x = read_datum(&a, &ok), y = read_datum(&b, &ok);
    if (!ok) return cmp_bytes(ap, alen, bp, blen);
    c = cmp_datum(x, y);
  }
  return c;
}

int kvf_compare(int which, const char *a, size_t alen, const char *b, size_t blen) {
  switch (which) {
    case KVF_LISTS:
      return cmp_lists(a, alen, b, blen);
    case KVF_ZSETS:
      return cmp_zsets(a, alen, b, blen);
    case KVF_ARDB:
      return cmp_ardb(a, alen, b, blen);
    case KVF_FLOYD_LISTS:
      return cmp_floyd_lists(a, alen, b, blen);
    default:
      return cmp_floyd_zsets(a, alen, b, blen);
  }
}

/* The state of a comparator object is its entry. */
static struct entry {
  int which;
  const char *name;
} entries[] = {
    {KVF_LISTS, "blackwidow.ListsDataKeyComparator"},   {KVF_ZSETS, "blackwidow.ZSetsScoreKeyComparator"}, {KVF_ARDB, "ardb.comparator"},
    {KVF_FLOYD_LISTS, "floyd.ListsDataKeyComparator"}, {KVF_FLOYD_ZSETS, "floyd.ZSetsScoreKeyComparator"},
};

const char *kvf_name(int which) { return entries[which].name; }

static int object_compare(void *st, const char *a, size_t an, const char *b, size_t bn) { return kvf_compare(((struct entry *)st)->which, a, an, b, bn); }
static const char *object_name(void *st) { return ((struct entry *)st)->name; }
static void nothing(void *st) { (void)st; }

rocksdb_comparator_t *kvf_comparator(int which) { return rocksdb_comparator_create(&entries[which], nothing, object_compare, object_name); }

size_t kvf_rows(void *iter, char *buf, size_t cap, size_t *need) {
  rocksdb_iterator_t *it = iter;
  size_t used = 0;
  *need = 0;
  while (rocksdb_iter_valid(it)) {
    size_t kn, vn;
    const char *k = rocksdb_iter_key(it, &kn);
    const char *v = rocksdb_iter_value(it, &vn);
    if (cap - used < 8 + kn + vn) {
      if (used == 0) *need = 8 + kn + vn;
      break;
    }
    uint32_t head[2] = {(uint32_t)kn, (uint32_t)vn};
    memcpy(buf + used, head, 8);
    memcpy(buf + used + 8, k, kn);
    memcpy(buf + used + 8 + kn, v, vn);
    used += 8 + kn + vn;
    rocksdb_iter_next(it);
  }
  return used;
}
