// Package inventory counts the files and rows of a finished target. It compares them with the results of the tasks,
// with the contents of the target's stores and, as the last step before the target is published, with its directory.
// These checks do not depend on the proof.
package inventory
