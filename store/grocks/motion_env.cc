//go:build rocksdb

#include "motion_env.h"

#include <vector>

#include "rocksdb/utilities/object_registry.h"

extern "C" {
#include "compare.h"
}

using namespace rocksdb;

namespace {

// Order is one of the orders of the formats, shortening nothing.
class Order : public Comparator {
 public:
  explicit Order(int which) : which_(which) {}
  const char* Name() const override { return kvf_name(which_); }
  int Compare(const Slice& a, const Slice& b) const override { return kvf_compare(which_, a.data(), a.size(), b.data(), b.size()); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  int which_;
};

}  // namespace

const Comparator* OrderOf(int which) {
  static const std::vector<Order>* const orders = [] {
    auto* all = new std::vector<Order>;
    for (int i = 0; i < KVF_ORDERS; i++) all->emplace_back(i);
    for (auto& o : *all)
      ObjectLibrary::Default()->AddFactory<const Comparator>(
          o.Name(), [&o](const std::string&, std::unique_ptr<const Comparator>*, std::string*) -> const Comparator* { return &o; });
    return all;
  }();
  return which < 0 ? BytewiseComparator() : &(*orders)[which];
}

namespace {

// Unsynced is the file system without syncs: these databases need not outlive the machine.
class Unsynced : public EnvWrapper {
 public:
  Unsynced() : EnvWrapper(Env::Default()) {}
  Status NewWritableFile(const std::string& name, std::unique_ptr<WritableFile>* out, const EnvOptions& o) override {
    std::unique_ptr<WritableFile> f;
    Status s = target()->NewWritableFile(name, &f, o);
    if (s.ok()) out->reset(new File(std::move(f)));
    return s;
  }
  Status NewDirectory(const std::string& name, std::unique_ptr<Directory>* out) override {
    out->reset(new Dir);
    return target()->FileExists(name);
  }

 private:
  class File : public WritableFileWrapper {
   public:
    explicit File(std::unique_ptr<WritableFile> f) : WritableFileWrapper(f.get()), owned_(std::move(f)) {}
    Status Sync() override { return Flush(); }
    Status Fsync() override { return Flush(); }
    Status RangeSync(uint64_t, uint64_t) override { return Status::OK(); }
    bool IsSyncThreadSafe() const override { return owned_->IsSyncThreadSafe(); }

   private:
    std::unique_ptr<WritableFile> owned_;
  };
  class Dir : public Directory {
   public:
    Status Fsync() override { return Status::OK(); }
  };
};

}  // namespace

Env* FastEnv() {
  static Env* const env = new Unsynced;
  return env;
}
