// Writes a database with LevelDB itself whose comparer wraps around, and prints what its iterator shows.
//
//	make DIR SEED OPS REOPENS
//
// A key is a letter and an int64, big endian. Each of OPS operations puts or deletes a key; a put's value is the
// number of the operation. The database is closed and opened again REOPENS times on the way, which turns its log
// into a table of level 0. What follows the last time stays in the log.
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

class Wrapping : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override {
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    int64_t d = static_cast<int64_t>(number(a) - number(b));
    return d < 0 ? -1 : d > 0;
  }
  const char* Name() const override { return "test.wrapping"; }
  void FindShortestSeparator(std::string*, const leveldb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

  static uint64_t number(const leveldb::Slice& s) {
    uint64_t n = 0;
    for (int i = 1; i < 9; i++) n = n << 8 | static_cast<uint8_t>(s[i]);
    return n;
  }
};

std::string key(char letter, uint64_t n) {
  std::string s(1, letter);
  for (int i = 7; i >= 0; i--) s.push_back(static_cast<char>(n >> (8 * i)));
  return s;
}

void check(const leveldb::Status& s) {
  if (!s.ok()) {
    std::fprintf(stderr, "%s\n", s.ToString().c_str());
    std::exit(1);
  }
}

}  // namespace

int main(int, char** argv) {
  Wrapping order;
  leveldb::Options o;
  o.create_if_missing = true;
  o.comparator = &order;
  o.compression = leveldb::kNoCompression;
  uint64_t x = std::strtoull(argv[2], nullptr, 10);
  int ops = std::atoi(argv[3]), reopens = std::atoi(argv[4]);
  auto random = [&x](uint64_t n) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (x >> 33) % n;
  };
  leveldb::DB* db = nullptr;
  check(leveldb::DB::Open(o, argv[1], &db));
  for (int i = 1; i <= ops; i++) {
    leveldb::WriteBatch b;
    for (uint64_t n = 1 + random(2); n > 0; n--) {
      // Letters c and d have numbers all round, the others near ones.
      char letter = static_cast<char>('a' + random(6));
      uint64_t number = random(12);
      number = letter == 'c' || letter == 'd' ? number * 0x1555555555555555u : number - 6;
      if (random(3) == 0)
        b.Delete(key(letter, number));
      else
        b.Put(key(letter, number), std::to_string(i));
    }
    check(db->Write(leveldb::WriteOptions(), &b));
    if (i % (ops / (reopens + 1) + 1) == 0) {
      delete db;
      check(leveldb::DB::Open(o, argv[1], &db));
    }
  }
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(leveldb::ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next())
    std::printf("%c %lld %s\n", it->key()[0], static_cast<long long>(Wrapping::number(it->key())), it->value().ToString().c_str());
  check(it->status());
  it.reset();
  delete db;
}
