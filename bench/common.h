// What the benchmark's programs share: how sources are opened and targets written.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

// The databases of a nemo dataset.
inline const char* const kDatabases[] = {"kv", "hash", "list", "set", "zset"};

inline void Check(const rocksdb::Status& s) {
  if (s.ok()) return;
  std::fprintf(stderr, "%s\n", s.ToString().c_str());
  std::exit(1);
}

// TargetOptions writes tables as the engines of the time do: block-based, format version 2, CRC32c,
// snappy, a full bloom filter of 10 bits a key. Nothing happens in the background.
inline rocksdb::Options TargetOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 2;
  table.checksum = rocksdb::kCRC32c;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  rocksdb::Options o;
  o.create_if_missing = true;
  o.error_if_exists = true;
  o.compression = rocksdb::kSnappyCompression;
  o.disable_auto_compactions = true;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

inline std::unique_ptr<rocksdb::DB> OpenSource(const std::string& dir) {
  rocksdb::DB* db = nullptr;
  Check(rocksdb::DB::OpenForReadOnly(rocksdb::Options(), dir, &db));
  return std::unique_ptr<rocksdb::DB>(db);
}

// ScanOptions reads ahead, leaves the cache alone and verifies checksums.
inline rocksdb::ReadOptions ScanOptions() {
  rocksdb::ReadOptions o;
  o.fill_cache = false;
  o.readahead_size = 2 << 20;
  o.verify_checksums = true;
  return o;
}
