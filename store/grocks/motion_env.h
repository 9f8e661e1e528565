#ifndef KVFERRY_GROCKS_MOTION_ENV_H
#define KVFERRY_GROCKS_MOTION_ENV_H

#include "rocksdb/comparator.h"
#include "rocksdb/env.h"

// OrderOf returns an order of compare.h, bytewise below 0. RocksDB's backups look for it by its name.
const rocksdb::Comparator* OrderOf(int which);

// FastEnv is the system without syncs.
rocksdb::Env* FastEnv();

#endif
