// What the benchmark's programs share: how sources are opened and targets written.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

extern "C" {
#include "../store/grocks/compare.h"
}

inline void Check(const rocksdb::Status& s) {
  if (s.ok()) return;
  std::fprintf(stderr, "%s\n", s.ToString().c_str());
  std::exit(1);
}

// Order is one of the orders of the formats, shortening nothing.
class Order : public rocksdb::Comparator {
 public:
  Order(int which, const char* name) : which_(which), name_(name) {}
  const char* Name() const override { return name_; }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return kvf_compare(which_, a.data(), a.size(), b.data(), b.size());
  }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  int which_;
  const char* name_;
};

inline const Order kOrders[] = {
    {KVF_LISTS, "blackwidow.ListsDataKeyComparator"},
    {KVF_ZSETS, "blackwidow.ZSetsScoreKeyComparator"},
    {KVF_ARDB, "ardb.comparator"},
    {KVF_FLOYD_LISTS, "floyd.ListsDataKeyComparator"},
    {KVF_FLOYD_ZSETS, "floyd.ZSetsScoreKeyComparator"},
};

// TargetOptions writes tables as the engines of the time do: block-based, format version 2, CRC32c,
// snappy, a full bloom filter of 10 bits a key; or, from version 3 on, as later ones do, with XXH3. Nothing happens in the
// background.
inline rocksdb::Options TargetOptions(uint32_t version = 2) {
  rocksdb::BlockBasedTableOptions table;
  table.format_version = version;
  table.checksum = version > 2 ? rocksdb::kXXH3 : rocksdb::kCRC32c;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  rocksdb::Options o;
  o.create_if_missing = true;
  o.error_if_exists = true;
  o.compression = rocksdb::kSnappyCompression;
  o.disable_auto_compactions = true;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

// Source is a database opened read only, with the orders of its column families.
struct Source {
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;

  ~Source() {
    for (rocksdb::ColumnFamilyHandle* f : families) db->DestroyColumnFamilyHandle(f);
  }
};

// OrderOf returns the order of a column family: the only one of its MANIFEST that can be its own.
inline const rocksdb::Comparator* OrderOf(const std::string& manifest, const std::string& family) {
  auto names = [&](const Order& o) { return manifest.find(o.Name()) != std::string::npos; };
  if (names(kOrders[2])) return &kOrders[2];
  if (names(kOrders[1]) && family == "score_cf") return &kOrders[1];
  if (names(kOrders[0]) && family == "data_cf") return &kOrders[0];
  if (names(kOrders[3]) && family == "list_data_cf") return &kOrders[3];
  if (names(kOrders[4]) && family == "zset_score_cf") return &kOrders[4];
  return rocksdb::BytewiseComparator();
}

inline std::string ReadManifest(const std::string& dir) {
  std::string name;
  std::getline(std::ifstream(dir + "/CURRENT"), name);
  std::ifstream file(dir + "/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void OpenSource(const std::string& dir, Source* s) {
  const std::string manifest = ReadManifest(dir);
  std::vector<std::string> names;
  Check(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), dir, &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    rocksdb::ColumnFamilyOptions o;
    o.comparator = OrderOf(manifest, name);
    families.emplace_back(name, o);
  }
  rocksdb::DB* db = nullptr;
  Check(rocksdb::DB::OpenForReadOnly(rocksdb::DBOptions(), dir, families, &s->families, &db));
  s->db.reset(db);
}

// Databases returns the paths below root, relative to it, that hold a database.
inline std::vector<std::string> Databases(const std::string& root) {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(root)) {
    if (e.path().filename() == "CURRENT") out.push_back(std::filesystem::relative(e.path().parent_path(), root));
  }
  if (out.empty()) {
    std::fprintf(stderr, "%s: no database here\n", root.c_str());
    std::exit(1);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// ScanOptions reads ahead, leaves the cache alone and verifies checksums.
inline rocksdb::ReadOptions ScanOptions() {
  rocksdb::ReadOptions o;
  o.fill_cache = false;
  o.readahead_size = 2 << 20;
  o.verify_checksums = true;
  return o;
}
