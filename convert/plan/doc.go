// Package plan cuts a conversion into tasks. A task is one database, a set of types that the source reads or the
// target writes together, and one span of user keys. A plan depends only on the source and the filter, so a resumed
// run has the same plan with any number of workers and any memory. The journal stores it as JSON.
//
// A Sample is a part of a plan that represents the whole. ProofTasks lists the parts of a finished target to read
// back.
package plan
