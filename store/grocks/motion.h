#ifndef KVFERRY_GROCKS_MOTION_H
#define KVFERRY_GROCKS_MOTION_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A column family of a database and the rows that it should have:
 *
 *   +----------------+------------------+-----+-------+
 *   | key length (4B)| value length (4B)| key | value |
 *   +----------------+------------------+-----+-------+
 *
 * in host order. order is one of compare.h, -1 bytewise. */
typedef struct {
  const char *name;
  int order;
  const char *rows;
  size_t len;
} kvf_family;

/* What the engine's compaction filter drops. */
enum { KVF_RULE_NONE = 0, KVF_RULE_NEMO, KVF_RULE_STRINGS, KVF_RULE_COLLECTIONS, KVF_RULE_LISTS, KVF_RULE_STREAMS, KVF_RULE_FLOYD, KVF_RULE_KVROCKS };

/* kvf_motion puts the database in dir through a motion by its name; scratch is for its files. It returns what is wrong,
 * to be freed, or NULL. seed decides about what is random; filters take now, in Unix seconds, for the time. */
char *kvf_motion(const char *dir, const char *scratch, const char *motion, int rule, unsigned seed, long now,
                 const kvf_family *families, size_t n);

#ifdef __cplusplus
}
#endif

#endif
