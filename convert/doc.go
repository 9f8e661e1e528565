// Package convert converts a dataset to another format: plan, run, prove, publish.
//
//	plan     cut the work into tasks: one database, one group of the target's types and one span
//	         of user keys each. The plan depends only on the source and the options.
//	run      execute the tasks on several workers, in <target>.kvferry/ beside the target. A journal
//	         there records each finished task, so that an interrupted run can be resumed.
//	prove    reopen the target, read its records back and compare the fingerprints.
//	publish  sync, and rename to the target's path, which exists only if the target is complete. A target in an
//	         object store is uploaded before, and appears with its last object.
//
// An attempt is one pass through these phases. A Report describes the result. The subpackages do not import this
// package: plan holds the tasks and result their results, workers schedules tasks, transfer executes one, work keeps
// the journal and publishes, inventory counts the files of the target, and paths checks locations.
//
// The package uses formats and stores only through their interfaces.
package convert
