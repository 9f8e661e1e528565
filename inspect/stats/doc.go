// Package stats counts in one pass what a dataset holds: records by type and database with their sizes and expiries, the
// largest keys, prefixes, rows that are garbage, and files.
//
// Sizes and lengths are counted in sketches of bounded size: sums, extremes and the largest keys are exact, quantiles are
// within 1.6 %, and of prefixes the small ones are folded when there are too many. The result does not depend on the number
// of workers.
package stats
