// The reference that kvferry is measured against: what RocksDB itself needs, in C++ and on one
// thread, to scan a dataset and to load the same rows into new databases, decoding nothing.
//
//   reference scan SRC        iterate over all rows of all databases below SRC
//   reference load SRC DST    the same, and write them with SstFileWriter and ingest the files;
//                             a third argument is the format_version of the tables, else 2
//
// Prints the rows and their bytes as JSON.
#include <cstdint>

#include "common.h"
#include "rocksdb/sst_file_writer.h"

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kFileSize = 64 << 20;

// Loader writes ascending rows of a column family into files of 64 MiB and ingests them.
class Loader {
 public:
  Loader(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const rocksdb::Options& options, std::string files)
      : db_(db), family_(family), options_(options), files_(std::move(files)) {}

  void Add(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    if (!writer_) {
      paths_.push_back(files_ + "/" + std::to_string(paths_.size()) + ".sst");
      writer_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options_);
      Check(writer_->Open(paths_.back()));
    }
    Check(writer_->Put(key, value));
    if (writer_->FileSize() >= kFileSize) Close();
  }

  void Finish() {
    Close();
    if (paths_.empty()) return;
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    Check(db_->IngestExternalFile(family_, paths_, ingest));
  }

 private:
  void Close() {
    if (!writer_) return;
    Check(writer_->Finish());
    writer_.reset();
  }

  rocksdb::DB* db_;
  rocksdb::ColumnFamilyHandle* family_;
  rocksdb::Options options_;
  std::string files_;
  std::vector<std::string> paths_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
};

uint64_t rows, bytes;

// Scan iterates over a column family; loader may be null.
void Scan(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, Loader* loader) {
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(ScanOptions(), family));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    rows++;
    bytes += it->key().size() + it->value().size();
    if (loader) loader->Add(it->key(), it->value());
  }
  Check(it->status());
}

// Load copies a database into a new one, column family by column family.
void Load(const Source& src, const std::string& dst, uint32_t version) {
  fs::create_directories(dst);
  const std::string files = dst + ".files";
  rocksdb::Options options = TargetOptions(version);
  options.comparator = src.families[0]->GetComparator();
  rocksdb::DB* raw = nullptr;
  Check(rocksdb::DB::Open(options, dst, &raw));
  std::unique_ptr<rocksdb::DB> db(raw);
  for (rocksdb::ColumnFamilyHandle* from : src.families) {
    options.comparator = from->GetComparator();
    rocksdb::ColumnFamilyHandle* to = db->DefaultColumnFamily();
    const bool more = from->GetName() != rocksdb::kDefaultColumnFamilyName;
    if (more) Check(db->CreateColumnFamily(options, from->GetName(), &to));
    fs::create_directories(files);
    Loader loader(db.get(), to, options, files);
    Scan(src.db.get(), from, &loader);
    loader.Finish();
    fs::remove_all(files);
    if (more) Check(db->DestroyColumnFamilyHandle(to));
  }
  Check(db->Close());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool load = mode == "load" && (argc == 4 || argc == 5);
  if (!load && !(mode == "scan" && argc == 3)) {
    std::fprintf(stderr, "usage: reference scan SRC | reference load SRC DST [VERSION]\n");
    return 64;
  }
  const std::string root = argv[2];
  const uint32_t version = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : 2;
  for (const std::string& name : Databases(root)) {
    Source src;
    OpenSource(root + "/" + name, &src);
    if (load) {
      Load(src, std::string(argv[3]) + "/" + name, version);
    } else {
      for (rocksdb::ColumnFamilyHandle* family : src.families) Scan(src.db.get(), family, nullptr);
    }
  }
  std::printf("{\"rows\":%llu,\"bytes\":%llu}\n", (unsigned long long)rows, (unsigned long long)bytes);
  return 0;
}
