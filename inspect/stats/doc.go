// Package stats summarizes a dataset in one pass: records by database and type with sizes and expiries, the largest
// keys, prefixes by the shapes of keys (KeyShaper), garbage rows and files (Facts).
//
// Sizes and lengths go into sketches of bounded size. Sums, extremes and the largest keys are exact, quantiles are
// within 1.6 %, and prefixes lose their names, but not their sums, where there are too many (see tree). The result does
// not depend on the number of workers.
package stats
