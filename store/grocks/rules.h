#ifndef KVFERRY_GROCKS_RULES_H
#define KVFERRY_GROCKS_RULES_H

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "rocksdb/slice.h"

// Number is a number in host order at an offset, 0 where the bytes end before it.
template <class T>
T Number(const rocksdb::Slice& s, size_t off) {
  T v{};
  if (off + sizeof(T) <= s.size()) memcpy(&v, s.data() + off, sizeof(T));
  return v;
}

// Lookup finds a row of the column family that has the meta rows.
using Lookup = std::function<bool(const std::string& key, std::string* value)>;

// Rule is the compaction filter of an engine.
class Rule {
 public:
  virtual ~Rule() = default;
  // MetaFamily is the column family that Lookup looks into.
  virtual const char* MetaFamily() const { return "default"; }
  // Drops says whether a compaction drops a row.
  virtual bool Drops(const std::string& family, const rocksdb::Slice& key, const rocksdb::Slice& value, const Lookup& meta) const = 0;
  // Delete makes of a meta row what the engine leaves when the record is deleted or past its time; false when the row is
  // none of those that it can leave.
  virtual bool Delete(const rocksdb::Slice& key, std::string* value) const = 0;
};

// NewRule makes a rule by its number in motion.h, or null. now is in Unix seconds.
std::unique_ptr<Rule> NewRule(int rule, int64_t now);

#endif
