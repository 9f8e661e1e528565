//go:build rocksdb

#include "motion.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rocksdb/cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"

#include "motion_env.h"
#include "rules.h"

using namespace rocksdb;

namespace {

struct Less {
  const Comparator* c;
  bool operator()(const std::string& a, const std::string& b) const { return c->Compare(a, b) < 0; }
};
using Rows = std::map<std::string, std::string, Less>;

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error(what); }
void Must(const char* what, const Status& s) {
  if (!s.ok()) Fail(std::string(what) + ": " + s.ToString());
}

// Database is a database, the rows that it should have, and how it is opened.
class Database {
 public:
  std::vector<std::string> names;
  std::vector<Rows> model;
  std::vector<const Comparator*> orders;
  DB* db = nullptr;
  std::vector<ColumnFamilyHandle*> handles;
  DBOptions db_options;
  ColumnFamilyOptions cf_options;
  BlockBasedTableOptions table;
  std::unique_ptr<Rule> rule;
  std::function<void()> later;  // makes the rule that of a minute later
  std::atomic<uint64_t> dropped{0};

  ~Database() {
    for (auto* h : handles) db->DestroyColumnFamilyHandle(h);
    delete db;  // with a snapshot that a failed motion holds, too
  }

  Database() {
    db_options.paranoid_checks = true;
    db_options.statistics = CreateDBStatistics();
    db_options.max_background_jobs = 2;
    db_options.env = FastEnv();
    cf_options.write_buffer_size = 64 << 10;
    cf_options.target_file_size_base = 16 << 10;
    cf_options.max_bytes_for_level_base = 64 << 10;
    table.filter_policy.reset(NewBloomFilterPolicy(10, false));
    table.block_cache = NewLRUCache(8 << 20);
    table.cache_index_and_filter_blocks = true;
    table.format_version = 2;
    table.checksum = kCRC32c;
  }

  std::vector<ColumnFamilyDescriptor> Families() {
    cf_options.table_factory.reset(NewBlockBasedTableFactory(table));
    std::vector<ColumnFamilyDescriptor> out;
    for (size_t i = 0; i < names.size(); i++) {
      ColumnFamilyOptions o = cf_options;
      o.comparator = orders[i];
      if (filters_.size() > i) o.compaction_filter = filters_[i].get();
      out.emplace_back(names[i], o);
    }
    return out;
  }

  void Open(const std::string& dir) { Must("open", DB::Open(db_options, dir, Families(), &handles, &db)); }

  void Close() {
    if (!db) return;
    for (auto* h : handles) db->DestroyColumnFamilyHandle(h);
    handles.clear();
    Must("close", db->Close());
    delete db;
    db = nullptr;
  }

  // Filter makes compactions drop what the engine's own filter does.
  void Filter() {
    for (size_t i = 0; i < names.size(); i++) filters_.push_back(std::make_unique<Dropper>(this, i));
  }

  // Metas is where the rows stand that say which others are alive.
  size_t Metas() const { return std::find(names.begin(), names.end(), rule->MetaFamily()) - names.begin(); }

  // DropFromModel takes rows out of the model that a compaction would drop.
  void DropFromModel() {
    Rows& metas = model[Metas()];
    auto meta = [&](const std::string& k, std::string* v) {
      auto it = metas.find(k);
      if (it == metas.end()) return false;
      *v = it->second;
      return true;
    };
    for (size_t i = 0; i < model.size(); i++)
      for (auto it = model[i].begin(); it != model[i].end();) it = rule->Drops(names[i], it->first, it->second, meta) ? model[i].erase(it) : std::next(it);
  }

  // Check compares what the database has with the rows; snapshot may be null.
  void Check(const char* when, const std::vector<Rows>& want, const Snapshot* snapshot = nullptr) {
    for (size_t i = 0; i < names.size(); i++) {
      ReadOptions ro;
      ro.snapshot = snapshot;
      std::unique_ptr<Iterator> it(db->NewIterator(ro, handles[i]));
      auto row = want[i].begin();
      for (it->SeekToFirst(); it->Valid(); it->Next(), ++row)
        if (row == want[i].end() || it->key() != row->first || it->value() != row->second)
          Fail(std::string(when) + ": " + names[i] + ": another row than the model: " + it->key().ToString(true));
      Must(when, it->status());
      if (row != want[i].end()) Fail(std::string(when) + ": " + names[i] + ": rows are missing of " + std::to_string(want[i].size()));
      size_t n = 0;
      for (auto& r : want[i]) {
        if (n++ % 17) continue;
        PinnableSlice v;
        Must(when, db->Get(ro, handles[i], r.first, &v));
        if (v != r.second) Fail(std::string(when) + ": Get finds another value");
      }
    }
  }
  void Check(const char* when) { Check(when, model); }

  void Compact(BottommostLevelCompaction how = BottommostLevelCompaction::kForce) {
    CompactRangeOptions o;
    o.bottommost_level_compaction = how;
    for (auto* h : handles) Must("compact", db->CompactRange(o, h, nullptr, nullptr));
  }

  void Flush() { Must("flush", db->Flush(FlushOptions(), handles)); }

  // Wait returns when nothing happens in the background any more.
  void Wait() {
    for (int quiet = 0; quiet < 5;) {
      uint64_t running = 0, pending = 0, flushing = 0;
      for (auto* h : handles) {
        uint64_t p = 0;
        db->GetIntProperty(h, DB::Properties::kCompactionPending, &p);
        pending += p;
      }
      db->GetIntProperty(DB::Properties::kNumRunningCompactions, &running);
      db->GetIntProperty(DB::Properties::kNumRunningFlushes, &flushing);
      quiet = running + pending + flushing ? 0 : quiet + 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void Put(size_t i, const std::string& k, const std::string& v) {
    Must("put", db->Put(WriteOptions(), handles[i], k, v));
    model[i][k] = v;
  }
  // Touch writes a row again.
  void Touch() {
    for (size_t i = 0; i < model.size(); i++)
      if (!model[i].empty()) return Put(i, model[i].begin()->first, model[i].begin()->second);
  }
  void Delete(size_t i, const std::string& k) {
    Must("delete", db->Delete(WriteOptions(), handles[i], k));
    model[i].erase(k);
  }
  void DeleteRange(size_t i, const std::string& from, const std::string& to) {
    Must("delete range", db->DeleteRange(WriteOptions(), handles[i], from, to));
    model[i].erase(model[i].lower_bound(from), model[i].lower_bound(to));
  }

  // Scribble overwrites, deletes and range deletes about so many of a thousand rows.
  void Scribble(std::mt19937& rnd, unsigned of_1000) {
    for (size_t i = 0; i < model.size(); i++) {
      std::vector<std::string> keys;
      for (auto& r : model[i])
        if (rnd() % 1000 < of_1000) keys.push_back(r.first);
      for (auto& k : keys) rnd() % 3 ? Put(i, k, model[i][k] + std::to_string(rnd() % 100)) : Delete(i, k);
      if (keys.size() > 4) {
        size_t at = rnd() % (keys.size() - 2);
        DeleteRange(i, keys[at], keys[at + 1]);
      }
    }
  }

  std::vector<std::string> Tables() {
    std::vector<LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    std::vector<std::string> out;
    for (auto& f : files) out.push_back(f.name);
    return out;
  }

 private:
  class Dropper : public CompactionFilter {
   public:
    Dropper(Database* d, size_t i) : d_(d), i_(i) {}
    const char* Name() const override { return "kvferry.rule"; }
    bool Filter(int, const Slice& key, const Slice& value, std::string*, bool*) const override {
      bool drop = d_->rule->Drops(d_->names[i_], key, value, [this](const std::string& k, std::string* v) {
        return d_->db->Get(ReadOptions(), d_->handles[d_->Metas()], k, v).ok();
      });
      if (drop) d_->dropped++;
      return drop;
    }

   private:
    Database* d_;
    size_t i_;
  };
  std::vector<std::unique_ptr<Dropper>> filters_;
};

struct Motion {
  const char* name;
  void (*run)(Database&, const std::string& dir, const std::string& scratch, std::mt19937&);
};

void SnapshotCompact(Database& d, const std::string& dir, const std::string&, std::mt19937&) {
  d.Open(dir);
  const Snapshot* s = d.db->GetSnapshot();
  d.Compact();
  d.Check("compacted under a snapshot");
  d.Check("compacted under a snapshot, its view", d.model, s);
  d.db->ReleaseSnapshot(s);
  d.Compact();
  d.Check("compacted again");
}

void SnapshotWriteCompact(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) {
  d.Open(dir);
  const Snapshot* s = d.db->GetSnapshot();
  std::vector<Rows> before = d.model;
  d.Scribble(rnd, 100);
  d.Compact();
  d.Check("written and compacted under a snapshot");
  d.Check("written and compacted, the snapshot's view", before, s);
  d.db->ReleaseSnapshot(s);
  d.Compact();
  d.Check("compacted after the snapshot");
  d.Close();
  d.Open(dir);
  d.Check("reopened");
}

void Steps(Database& d, const std::string& dir, std::mt19937& rnd) {
  d.Open(dir);
  const Snapshot* s = nullptr;
  std::vector<Rows> seen;
  for (int step = 0; step < 6; step++) {
    if (step % 3 == 0) {
      s = d.db->GetSnapshot();
      seen = d.model;
    }
    d.Scribble(rnd, 30);
    d.Flush();
    d.Wait();
    if (step % 2) d.Compact(BottommostLevelCompaction::kIfHaveCompactionFilter);
    d.Check("in steps");
    d.Check("in steps, the snapshot's view", seen, s);
    if (step % 3 == 2) d.db->ReleaseSnapshot(s);
  }
  d.Close();
  d.Open(dir);
  d.Check("reopened");
}

void Leveled(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) { Steps(d, dir, rnd); }
void Dynamic(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) {
  d.cf_options.level_compaction_dynamic_level_bytes = true;
  Steps(d, dir, rnd);
}
void Universal(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) {
  d.cf_options.compaction_style = kCompactionStyleUniversal;
  Steps(d, dir, rnd);
}

// Filtered: what was written has nothing to drop; then records are deleted as the engine does it, and their rows go with
// the next compactions.
void Filtered(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) {
  if (!d.rule) return;
  d.Filter();
  d.Open(dir);
  const Snapshot* s = d.db->GetSnapshot();
  d.Compact();
  d.Check("filtered under a snapshot");
  d.db->ReleaseSnapshot(s);
  d.Compact();
  d.Check("filtered");
  if (d.dropped) Fail("the filter drops rows of what was just written");
  size_t at = d.Metas(), deleted = 0;
  for (auto& r : Rows(d.model[at])) {
    std::string v = r.second;
    if (rnd() % 3 || !d.rule->Delete(r.first, &v)) continue;
    d.Put(at, r.first, v);
    deleted++;
  }
  d.later();
  for (int i = 0; i < 2; i++) d.Compact();  // the first may find data before it drops metas
  for (int i = 0; i < 2; i++) d.DropFromModel();
  d.Check("filtered after deletions");
  if (deleted > 3 && d.dropped < deleted) Fail("the filter drops " + std::to_string(d.dropped) + " rows after " + std::to_string(deleted) + " deletions");
}

void Ttl(Database& d, const std::string& dir, const std::string&, std::mt19937&) {
  d.cf_options.ttl = d.cf_options.periodic_compaction_seconds = 30 * 24 * 60 * 60;
  d.Open(dir);
  auto before = d.Tables();
  d.Touch();
  d.Flush();
  d.Wait();
  d.Check("due by time");
  if (d.Tables() == before) Fail("tables that are years old are not due");
}

// Young: with the bound of 30 days of newer servers nothing is rewritten but the table of each column family whose last
// row has a sequence number.
void Young(Database& d, const std::string& dir, const std::string&, std::mt19937&) {
  d.cf_options.ttl = d.cf_options.periodic_compaction_seconds = 30 * 24 * 60 * 60;
  d.Open(dir);
  auto before = d.Tables();
  const Snapshot* s = d.db->GetSnapshot();
  d.Touch();
  d.Flush();
  d.db->ReleaseSnapshot(s);
  d.Wait();
  auto after = d.Tables();
  size_t kept = 0;
  for (auto& f : before) kept += std::count(after.begin(), after.end(), f);
  d.Check("young");
  if (kept + d.names.size() < before.size()) Fail("of " + std::to_string(before.size()) + " young tables " + std::to_string(before.size() - kept) + " were rewritten");
}

void Ingest(Database& d, const std::string& dir, const std::string& scratch, std::mt19937&) {
  d.Open(dir);
  for (size_t i = 0; i < d.model.size(); i++) {
    if (d.model[i].empty()) continue;
    std::string file = scratch + "/" + std::to_string(i) + ".sst";
    SstFileWriter w(EnvOptions(), Options(d.db_options, d.Families()[i].options));
    Must("table", w.Open(file));
    std::vector<std::string> keys;
    for (auto& r : d.model[i])
      if (keys.size() < 200) keys.push_back(r.first);
    for (auto& k : keys) {
      d.model[i][k] += "x";
      Must("table", w.Put(k, d.model[i][k]));
    }
    Must("table", w.Finish());
    Must("ingest", d.db->IngestExternalFile(d.handles[i], {file}, IngestExternalFileOptions()));
  }
  d.Check("ingested into");
  d.Compact();
  d.Check("ingested into and compacted");
}

void Checkpoints(Database& d, const std::string& dir, const std::string& scratch, std::mt19937& rnd) {
  d.Open(dir);
  Checkpoint* c;
  Must("checkpoint", Checkpoint::Create(d.db, &c));
  std::unique_ptr<Checkpoint> owned(c);
  Must("checkpoint", c->CreateCheckpoint(scratch + "/first"));
  std::vector<Rows> first = d.model;
  d.Scribble(rnd, 50);
  Must("checkpoint", c->CreateCheckpoint(scratch + "/second"));
  d.Close();
  d.Open(scratch + "/second");
  d.Check("second checkpoint");
  d.Close();
  d.Open(scratch + "/first");
  d.Check("first checkpoint", first);
  d.Compact();
  d.Check("first checkpoint, compacted", first);
}

void Backup(Database& d, const std::string& dir, const std::string& scratch, std::mt19937& rnd) {
  d.Open(dir);
  BackupEngine* b;
  Must("backup", BackupEngine::Open(BackupEngineOptions(scratch + "/backup"), FastEnv(), &b));
  std::unique_ptr<BackupEngine> owned(b);
  Must("backup", b->CreateNewBackup(d.db, true));
  std::vector<Rows> first = d.model;
  d.Scribble(rnd, 50);
  Must("backup", b->CreateNewBackup(d.db, true));
  Must("verify backup", b->VerifyBackup(1, true));
  Must("verify backup", b->VerifyBackup(2, true));
  d.Close();
  for (int id : {1, 2}) {
    std::string to = scratch + "/restored" + std::to_string(id);
    Must("restore", b->RestoreDBFromBackup(id, to, to));
    d.Open(to);
    d.Check("restored", id == 1 ? first : d.model);
    d.Close();
  }
}

void Repair(Database& d, const std::string& dir, const std::string&, std::mt19937& rnd) {
  Must("repair", RepairDB(dir, d.db_options, d.Families()));
  d.db_options.create_missing_column_families = true;  // as engines open: a column family without tables does not survive
  d.Open(dir);
  d.Check("repaired");
  if (d.db->GetLatestSequenceNumber() < 1) Fail("repaired: the last sequence is 0 again");
  const Snapshot* s = d.db->GetSnapshot();
  d.Compact();
  d.Check("repaired, and compacted under a snapshot");
  d.db->ReleaseSnapshot(s);
  d.Scribble(rnd, 30);
  d.Compact();
  d.Check("repaired and written");
}

// RepairBlind repairs without saying what column families there are, as ldb does.
void RepairBlind(Database& d, const std::string& dir, const std::string&, std::mt19937&) {
  for (auto* o : d.orders)
    if (o != d.orders[0]) return;  // it takes one comparator for all
  ColumnFamilyOptions o = d.cf_options;
  o.comparator = d.orders[0];
  Must("repair", RepairDB(dir, Options(d.db_options, o)));
  d.db_options.create_missing_column_families = true;
  d.Open(dir);
  d.Check("repaired");
}

void Verify(Database& d, const std::string& dir, const std::string&, std::mt19937&) {
  d.Open(dir);
  Must("verify checksums", d.db->VerifyChecksum());
  Must("verify checksums again, from the cache", d.db->VerifyChecksum());
  d.Check("verified");
  Must("verify checksums after reading", d.db->VerifyChecksum());
  auto& stats = *d.db_options.statistics;
  Must("reset", stats.Reset());
  for (size_t i = 0; i < d.model.size(); i++) {
    std::vector<std::string> absent;
    for (auto& r : d.model[i])
      if (absent.size() < 2000 && !d.model[i].count(r.first + "\x01no")) absent.push_back(r.first + "\x01no");
    std::string v;
    for (auto& k : absent)
      if (!d.db->Get(ReadOptions(), d.handles[i], k, &v).IsNotFound()) Fail("verified: an absent key is found");
    uint64_t useful = stats.getAndResetTickerCount(BLOOM_FILTER_USEFUL);
    if (useful < absent.size() * 9 / 10) Fail("filters turn away " + std::to_string(useful) + " of " + std::to_string(absent.size()) + " absent keys");
  }
}

void ReadOnly(Database& d, const std::string& dir, const std::string& scratch, std::mt19937&) {
  Must("open read only", DB::OpenForReadOnly(d.db_options, dir, d.Families(), &d.handles, &d.db));
  d.Check("read only");
  d.Close();
  d.db_options.max_open_files = -1;
  Must("open as secondary", DB::OpenAsSecondary(d.db_options, dir, scratch + "/secondary", d.Families(), &d.handles, &d.db));
  Must("catch up", d.db->TryCatchUpWithPrimary());
  d.Check("secondary");
}

// Properties compares what tables say with what RocksDB writes for the same rows.
void Properties(Database& d, const std::string& dir, const std::string& scratch, std::mt19937&) {
  Database own;
  own.names = d.names;
  own.orders = d.orders;
  own.model = d.model;
  d.Open(dir);
  TablePropertiesCollection tables;
  Must("properties", d.db->GetPropertiesOfAllTables(d.handles[0], &tables));
  for (auto& t : tables) own.table.format_version = t.second->index_value_is_delta_encoded ? 5 : 2;
  own.cf_options.target_file_size_base = 1 << 30;
  own.db_options.create_if_missing = own.db_options.create_missing_column_families = true;
  own.Open(scratch + "/own");
  for (size_t i = 0; i < d.model.size(); i++)
    for (auto& r : d.model[i]) own.Put(i, r.first, r.second);
  own.Compact();
  for (size_t i = 0; i < d.model.size(); i++) {
    auto all = [&](Database& x) {
      TablePropertiesCollection tables;
      Must("properties", x.db->GetPropertiesOfAllTables(x.handles[i], &tables));
      std::string names;
      uint64_t n[7] = {};
      for (auto& t : tables) {
        const TableProperties& p = *t.second;
        names = p.comparator_name + " " + p.prefix_extractor_name + " " + p.property_collectors_names + " " + p.compression_name + " " +
                p.column_family_name + " " + std::to_string(p.column_family_id) + " " + std::to_string(p.fixed_key_len) + " " +
                std::to_string(p.index_key_is_user_key) + std::to_string(p.index_value_is_delta_encoded);
        for (auto& u : {"rocksdb.block.based.table.index.type", "rocksdb.block.based.table.whole.key.filtering", "rocksdb.block.based.table.prefix.filtering"})
          names += " " + Slice(p.user_collected_properties.at(u)).ToString(true);
        n[0] += p.num_entries, n[1] += p.raw_key_size, n[2] += p.raw_value_size, n[3] += p.num_deletions, n[4] += p.num_merge_operands;
        n[5] += p.num_range_deletions, n[6] += p.num_filter_entries;
        if (p.creation_time == 0 || p.oldest_key_time > p.creation_time || p.file_creation_time == 0 || p.db_id.empty() || p.db_session_id.size() != 20 || p.orig_file_number == 0)
          if (&x == &d) Fail("a time or identity is missing");
        if (p.data_size == 0 || p.index_size == 0 || p.filter_size < p.num_entries || p.num_data_blocks == 0) Fail("a size is missing");
        if (p.user_collected_properties.count("rocksdb.external_sst_file.version")) Fail("a property of an ingested file");
      }
      for (auto v : n) names += " " + std::to_string(v);
      return names;
    };
    std::string ours = all(d), theirs = all(own);
    if (ours != theirs && !d.model[i].empty()) Fail(d.names[i] + ": properties " + ours + "; RocksDB writes " + theirs);
  }
}

const Motion motions[] = {
    {"snapshot, compact", SnapshotCompact}, {"snapshot, write, compact", SnapshotWriteCompact}, {"leveled", Leveled}, {"dynamic", Dynamic}, {"universal", Universal},
    {"filtered", Filtered}, {"ttl", Ttl}, {"young", Young}, {"ingest", Ingest}, {"checkpoint", Checkpoints}, {"backup", Backup}, {"repair", Repair},
    {"repair blind", RepairBlind}, {"verify", Verify}, {"read only", ReadOnly}, {"properties", Properties},
};

void Fill(Database& d, const kvf_family* families, size_t n) {
  for (size_t i = 0; i < n; i++) {
    d.names.push_back(families[i].name);
    d.orders.push_back(OrderOf(families[i].order));
    d.model.emplace_back(Less{d.orders.back()});
    for (const char *p = families[i].rows, *end = p + families[i].len; p < end;) {
      uint32_t len[2];
      memcpy(len, p, 8);
      d.model.back().emplace_hint(d.model.back().end(), std::string(p + 8, len[0]), std::string(p + 8 + len[0], len[1]));
      p += 8 + len[0] + len[1];
    }
  }
}

}  // namespace

char* kvf_motion(const char* dir, const char* scratch, const char* motion, int rule, unsigned seed, long now, const kvf_family* families, size_t n) {
  try {
    std::mt19937 rnd(seed);
    for (auto& m : motions) {
      if (strcmp(m.name, motion)) continue;
      Database d;
      d.rule = NewRule(rule, now);
      d.later = [&] { d.rule = NewRule(rule, now + 60); };
      Fill(d, families, n);
      m.run(d, dir, scratch, rnd);
      return nullptr;
    }
    return strdup("no such motion");
  } catch (const std::exception& e) {
    return strdup(e.what());
  }
}
