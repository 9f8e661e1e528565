// Rewrites a nemo dataset as one that has seen writes: the same visible rows, in RUNS overlapping
// sorted runs (L0 files, never compacted). About 20 % of the rows have an older version in an earlier run,
// and for 5 % a second row stood beside them in an earlier run and was deleted in a later one.
//
//   overlap SRC DST RUNS
#include <cstdint>

#include "common.h"
#include "rocksdb/memtablerep.h"

namespace {

// Mix is the finalizer of splitmix64: what happens to a row depends on its number alone.
uint64_t Mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Beside returns a key right behind key that the dataset does not have: a longer name or, for the
// nodes of a list, whose keys end in a sequence number of 8 bytes, a higher one.
std::string Beside(const rocksdb::Slice& key) {
  std::string s = key.ToString();
  if (s.size() > 10 && s[0] == 'l' && s.size() == 10u + (unsigned char)s[1]) {
    s[s.size() - 3] = 1;
  } else {
    s += '~';
  }
  return s;
}

struct Fate {
  int run;      // of the visible version
  int old;      // of an older version, or -1
  int born;     // of the row beside it, or -1
  int deleted;  // of that row's delete
};

Fate FateOf(uint64_t row, int runs) {
  const uint64_t h = Mix(row);
  Fate f{static_cast<int>(h % runs), -1, -1, -1};
  if ((h >> 16) % 100 < 20 && f.run > 0) f.old = static_cast<int>((h >> 32) % f.run);
  if ((h >> 24) % 100 < 5) {
    f.born = static_cast<int>((h >> 40) % (runs - 1));
    f.deleted = f.born + 1 + static_cast<int>((h >> 48) % (runs - 1 - f.born));
  }
  return f;
}

// Rewrite copies one database, one pass over the source a run. A vector as memtable takes ascending
// rows at no cost; each run is one flush.
void Rewrite(const std::string& src, const std::string& dst, int runs) {
  rocksdb::Options o = TargetOptions();
  o.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
  o.allow_concurrent_memtable_write = false;
  o.write_buffer_size = size_t{16} << 30;
  o.level0_slowdown_writes_trigger = o.level0_stop_writes_trigger = 1 << 20;
  rocksdb::DB* raw = nullptr;
  Check(rocksdb::DB::Open(o, dst, &raw));
  std::unique_ptr<rocksdb::DB> to(raw);
  Source from;
  OpenSource(src, &from);
  rocksdb::WriteOptions w;
  w.disableWAL = true;
  for (int run = 0; run < runs; run++) {
    std::unique_ptr<rocksdb::Iterator> it(from.db->NewIterator(ScanOptions()));
    uint64_t row = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next(), row++) {
      const rocksdb::Slice key = it->key(), value = it->value();
      const bool data = key.size() > 1;  // not a separator
      const Fate f = FateOf(row, runs);
      if (f.run == run) {
        Check(to->Put(w, key, value));
      } else if (data && f.old == run) {
        std::string old = value.ToString();
        if (!old.empty()) old[0] ^= 0x55;
        Check(to->Put(w, key, old));
      }
      if (data && f.born == run) Check(to->Put(w, Beside(key), value));
      if (data && f.deleted == run) Check(to->Delete(w, Beside(key)));
    }
    Check(it->status());
    Check(to->Flush(rocksdb::FlushOptions()));
  }
  Check(to->Close());
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc == 4 ? std::atoi(argv[3]) : 0;
  if (runs < 2) {
    std::fprintf(stderr, "usage: overlap SRC DST RUNS\n");
    return 64;
  }
  std::filesystem::create_directories(argv[2]);
  for (const std::string& name : Databases(argv[1])) {
    Rewrite(std::string(argv[1]) + "/" + name, std::string(argv[2]) + "/" + name, runs);
  }
  return 0;
}
