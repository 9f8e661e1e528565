// Package lsm merges the sorted runs of a keyspace into rows and entries.
//
// Each level-0 table, each deeper level and the rows of the logs form a run: a sequence of entries in internal key order. A
// cursor walks a run, checking its order; a loser tree merges cursors; rows keeps what a scan at the last sequence would
// return and counts all the rest.
//
//	log run   L0 table   L0 table   L1 ─ L1 ─ L1   …    runs, newest first
//	   │          │          │           │
//	cursor     cursor     cursor      cursor           entries of one run, within [lo, hi)
//	   └──────────┴────┬─────┴───────────┘
//	              loser tree                           entries of all, by internal key
//	                   │
//	       rows ───────┴─────── entries                the newest visible of each key; all of them
//
// A table is what a Source gives: a blocks.Walk through its blocks, and what stands around its rows. A table file is one, a
// spool of our own another: entries of logs, or of a table in disorder, sorted into a temporary file.
//
// With Env.Salvage what cannot be read of a table is skipped: see salvage.go.
package lsm
