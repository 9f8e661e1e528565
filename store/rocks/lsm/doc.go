// Package lsm merges the sorted runs of a keyspace into rows and entries.
//
// Each level-0 table, each deeper level and the log rows form a run: a sequence of entries in internal key order. A
// cursor iterates over a run and checks its order; a loser tree merges cursors; rows keeps the rows that a scan at the
// last sequence would return, and counts all other entries.
//
//	log run   L0 table   L0 table   L1 ─ L1 ─ L1   …    runs, newest first
//	   │          │          │           │
//	cursor     cursor     cursor      cursor           entries of one run, within [lo, hi)
//	   └──────────┴────┬─────┴───────────┘
//	              loser tree                           entries of all, by internal key
//	                   │
//	       rows ───────┴─────── entries                the newest visible of each key; all of them
//
// A table is a Source: a blocks.Walk through its blocks, plus metadata. It is a table file, or a spool of our own:
// entries of logs, or of a table in disorder, sorted into a temporary file.
//
// With Env.Salvage unreadable parts of a table are skipped: see salvage.go.
package lsm
