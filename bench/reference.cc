// The reference that kvferry is measured against: what RocksDB itself needs, in C++ and on one
// thread, to scan a nemo dataset and to load the same rows into new databases, decoding nothing.
//
//   reference scan SRC        iterate over all rows of the five databases
//   reference load SRC DST    the same, and write them with SstFileWriter and ingest the files
//
// Prints the rows and their bytes as JSON.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "rocksdb/sst_file_writer.h"

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kFileSize = 64 << 20;

// Loader writes ascending rows into files of 64 MiB and ingests them into a new database.
class Loader {
 public:
  explicit Loader(const std::string& dir) : dir_(dir), options_(TargetOptions()) {
    fs::create_directories(dir_ + ".files");
  }

  void Add(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    if (!writer_) {
      files_.push_back(dir_ + ".files/" + std::to_string(files_.size()) + ".sst");
      writer_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options_);
      Check(writer_->Open(files_.back()));
    }
    Check(writer_->Put(key, value));
    if (writer_->FileSize() >= kFileSize) Close();
  }

  void Finish() {
    Close();
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options_, dir_, &db));
    if (!files_.empty()) {
      rocksdb::IngestExternalFileOptions ingest;
      ingest.move_files = true;
      Check(db->IngestExternalFile(files_, ingest));
    }
    Check(db->Close());
    delete db;
    fs::remove_all(dir_ + ".files");
  }

 private:
  void Close() {
    if (!writer_) return;
    Check(writer_->Finish());
    writer_.reset();
  }

  std::string dir_;
  rocksdb::Options options_;
  std::vector<std::string> files_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool load = mode == "load" && argc == 4;
  if (!load && !(mode == "scan" && argc == 3)) {
    std::fprintf(stderr, "usage: reference scan SRC | reference load SRC DST\n");
    return 64;
  }
  uint64_t rows = 0, bytes = 0;
  for (const char* name : kDatabases) {
    std::unique_ptr<rocksdb::DB> db = OpenSource(std::string(argv[2]) + "/" + name);
    std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(ScanOptions()));
    std::unique_ptr<Loader> loader;
    if (load) {
      fs::create_directories(argv[3]);
      loader = std::make_unique<Loader>(std::string(argv[3]) + "/" + name);
    }
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      rows++;
      bytes += it->key().size() + it->value().size();
      if (loader) loader->Add(it->key(), it->value());
    }
    Check(it->status());
    it.reset();
    if (loader) loader->Finish();
  }
  std::printf("{\"rows\":%llu,\"bytes\":%llu}\n", (unsigned long long)rows, (unsigned long long)bytes);
  return 0;
}
