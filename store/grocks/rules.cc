//go:build rocksdb

#include "rules.h"

#include "motion.h"

using rocksdb::Slice;

namespace {

template <class T>
void Set(std::string* s, size_t off, T v) {
  memcpy(&(*s)[off], &v, sizeof v);
}

uint64_t BigEndian(const Slice& s, size_t off) { return __builtin_bswap64(Number<uint64_t>(s, off)); }

// Meta is what filters need of a meta row.
struct Meta {
  bool empty, past;
  uint64_t version;
};

// Versioned is the filter of an engine whose collections have versions: nemo, blackwidow, floyd.
class Versioned : public Rule {
 public:
  explicit Versioned(uint64_t now) : now_(now) {}

 protected:
  bool Past(uint64_t ts) const { return ts != 0 && ts < now_; }
  bool DropsMeta(const Meta& m) const { return (m.empty || m.past) && m.version < now_; }
  static bool DropsData(const Meta& m, uint64_t version) { return m.past || m.version > version; }

  uint64_t now_;
};

//	count (4B; lists 8B), version (4B), expiry (4B), …
class Collections : public Versioned {
 public:
  Collections(uint64_t now, bool lists) : Versioned(now), count_(lists ? 8 : 4) {}

  bool Drops(const std::string& family, const Slice& key, const Slice& value, const Lookup& meta) const override {
    if (family == "default") return DropsMeta(Parse(value));
    size_t n = Number<uint32_t>(key, 0);
    std::string of;
    return !meta(std::string(key.data() + 4, n), &of) || DropsData(Parse(of), Number<uint32_t>(key, 4 + n));
  }

  bool Delete(const Slice&, std::string* value) const override {
    memset(&(*value)[0], 0, count_);
    Set(value, count_, Number<uint32_t>(*value, count_) + 1);
    return true;
  }

 protected:
  virtual Meta Parse(const Slice& v) const {
    return {(count_ == 8 ? Number<uint64_t>(v, 0) : Number<uint32_t>(v, 0)) == 0, Past(Number<uint32_t>(v, count_ + 4)), Number<uint32_t>(v, count_)};
  }

 private:
  size_t count_;
};

//	groups (4B), added (8B), first, last and deleted id (48B), length (4B), version (4B)
// Meta rows stay.
class Streams : public Collections {
 public:
  explicit Streams(uint64_t now) : Collections(now, false) {}
  bool Drops(const std::string& family, const Slice& key, const Slice& value, const Lookup& meta) const override {
    return family != "default" && Collections::Drops(family, key, value, meta);
  }
  bool Delete(const Slice&, std::string* value) const override {
    Set(value, 60, uint32_t(0));
    Set(value, 64, Number<uint32_t>(*value, 64) + 1);
    return true;
  }

 protected:
  Meta Parse(const Slice& v) const override { return {false, false, Number<uint32_t>(v, 64)}; }
};

//	value, expiry (4B)
class Strings : public Versioned {
 public:
  using Versioned::Versioned;
  bool Drops(const std::string&, const Slice&, const Slice& value, const Lookup&) const override { return Past(Number<uint32_t>(value, value.size() - 4)); }
  bool Delete(const Slice&, std::string* value) const override {
    Set(value, value->size() - 4, uint32_t(1));
    return true;
  }
};

// Metas, data and, of zsets, scores are told by the first byte of the key.
//
//	meta:  count (8B), …, version (4B), expiry (4B)
//	data:  …, version (4B), expiry (4B)
class Nemo : public Versioned {
 public:
  using Versioned::Versioned;

  bool Drops(const std::string&, const Slice& key, const Slice& value, const Lookup& meta) const override {
    if (key.size() <= 1) return false;  // a separator
    if (strchr("HLSZ", key[0])) return DropsMeta(Parse(value));
    if (!strchr("hlszy", key[0])) return false;
    std::string of(1, key[0] == 'y' ? 'Z' : static_cast<char>(key[0] - 'a' + 'A'));
    of.append(key.data() + 2, static_cast<unsigned char>(key[1]));
    std::string v;
    return !meta(of, &v) || DropsData(Parse(v), Number<uint32_t>(value, value.size() - 8));
  }

  bool Delete(const Slice& key, std::string* value) const override {
    if (key.size() <= 1 || !strchr("HLSZ", key[0])) return false;
    Set(value, 0, uint64_t(0));
    Set(value, value->size() - 8, Number<uint32_t>(*value, value->size() - 8) + 1);
    return true;
  }

 private:
  Meta Parse(const Slice& v) const { return {Number<uint64_t>(v, 0) == 0, Past(Number<uint32_t>(v, v.size() - 4)), Number<uint32_t>(v, v.size() - 8)}; }
};

//	string:        type 0, value, reserved (16B), written (8B), expiry (8B)
//	hash, set, zset: type, count (4B), version (8B), reserved (16B), written (8B), expiry (8B)
//	list:          type 3, count (8B), version (8B), …, reserved (16B), written (8B), expiry (8B)
//	stream:        type 5, …, version (8B)
//	data:          reserved (8B), escaped key, two zeros, version (8B), …
class Floyd : public Versioned {
 public:
  explicit Floyd(int64_t now) : Versioned(now * 1000) {}

  bool Drops(const std::string& family, const Slice& key, const Slice& value, const Lookup& meta) const override {
    if (family == "default") {
      Meta m = Parse(value);
      return value[0] == string ? m.past : value[0] != stream && DropsMeta(m);
    }
    std::string head = Head(key), v;
    if (!meta(head + std::string(16, '\0'), &v)) return true;
    const char* want[] = {"", "hash_data_cf", "set_data_cf", "list_data_cf", "zset_data_cf", "stream_data_cf"};
    bool same = family == want[int(v[0])] || (v[0] == zset && family == "zset_score_cf");
    return !same || DropsData(Parse(v), Number<uint64_t>(key, head.size()));
  }

  bool Delete(const Slice&, std::string* value) const override {
    switch ((*value)[0]) {
      case string:
        Set(value, value->size() - 8, uint64_t(1) | flag);
        return true;
      case stream:
        Set(value, value->size() - 8, Number<uint64_t>(*value, value->size() - 8) + 1);
        return true;
      default:
        size_t count = (*value)[0] == list ? 8 : 4;
        memset(&(*value)[1], 0, count);
        Set(value, 1 + count, Number<uint64_t>(*value, 1 + count) + 1);
        return true;
    }
  }

 private:
  enum { string, hash, set, list, zset, stream };
  static constexpr uint64_t flag = uint64_t(1) << 63;  // milliseconds; seconds without it

  static uint64_t Millis(uint64_t ts) { return ts & flag ? ts & ~flag : ts * 1000; }

  // Head is a key up to its version.
  static std::string Head(const Slice& key) {
    size_t i = 8;
    for (; i + 1 < key.size() && (key[i] || key[i + 1]); i++) i += key[i] == 0;
    return std::string(key.data(), i + 2);
  }

  Meta Parse(const Slice& v) const {
    bool past = Past(Millis(Number<uint64_t>(v, v.size() - 8)));
    switch (v[0]) {
      case string:
        return {false, past, 0};
      case list:
        return {Number<uint64_t>(v, 1) == 0, past, Number<uint64_t>(v, 9)};
      case stream:
        return {false, false, Number<uint64_t>(v, v.size() - 8)};
    }
    return {Number<uint32_t>(v, 1) == 0, past, Number<uint64_t>(v, 5)};
  }
};

//	metadata: flags (1B), expiry in ms (8B), version (8B), size (8B), …   (strings and JSON end after the expiry)
//	data:     namespace length (1B), namespace, key length (4B), key, version (8B), …
class Kvrocks : public Rule {
 public:
  explicit Kvrocks(int64_t now) : now_(now * 1000) {}
  const char* MetaFamily() const override { return "metadata"; }

  bool Drops(const std::string& family, const Slice& key, const Slice& value, const Lookup& meta) const override {
    if (family == "metadata") return Dead(value, now_);
    if (family == "pubsub") return true;
    if (family == "propagate") return key == "script";
    if (family == "search" || family == "index") return false;
    size_t ns = 1 + static_cast<unsigned char>(key[0]), n = __builtin_bswap32(Number<uint32_t>(key, ns));
    std::string v;
    if (!meta(std::string(key.data(), ns) + std::string(key.data() + ns + 4, n), &v)) return true;
    return Single(v) || Past(v, now_ - 5 * 60 * 1000) || BigEndian(v, 9) != BigEndian(key, ns + 4 + n) || ZeroSegment(v, value);
  }

  bool Delete(const Slice&, std::string* value) const override {
    if (Single(*value)) {
      Set(value, 1, __builtin_bswap64(1));
    } else {
      Set(value, 9, Number<uint64_t>(*value, 9) + 1);
      Set(value, 17, uint64_t(0));
    }
    return true;
  }

 private:
  enum { string = 1, bitmap = 6, stream = 8, json = 10 };
  static int Type(const Slice& v) { return v[0] & 15; }
  static bool Single(const Slice& v) { return Type(v) == string || Type(v) == json; }
  static bool Past(const Slice& v, uint64_t now) { return BigEndian(v, 1) != 0 && BigEndian(v, 1) < now; }
  static bool Dead(const Slice& v, uint64_t now) { return Past(v, now) || (Type(v) < stream && !Single(v) && BigEndian(v, 17) == 0); }
  static bool ZeroSegment(const Slice& v, const Slice& bits) { return Type(v) == bitmap && std::string(bits.data(), bits.size()).find_first_not_of('\0') == std::string::npos; }

  uint64_t now_;
};

}  // namespace

std::unique_ptr<Rule> NewRule(int rule, int64_t now) {
  switch (rule) {
    case KVF_RULE_NEMO:
      return std::make_unique<Nemo>(now);
    case KVF_RULE_STRINGS:
      return std::make_unique<Strings>(now);
    case KVF_RULE_COLLECTIONS:
    case KVF_RULE_LISTS:
      return std::make_unique<Collections>(now, rule == KVF_RULE_LISTS);
    case KVF_RULE_STREAMS:
      return std::make_unique<Streams>(now);
    case KVF_RULE_FLOYD:
      return std::make_unique<Floyd>(now);
    case KVF_RULE_KVROCKS:
      return std::make_unique<Kvrocks>(now);
  }
  return nullptr;
}
