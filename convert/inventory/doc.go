// Package inventory counts what a finished target consists of and holds that against what the tasks say they wrote, what the
// stores of the target say they hold, and, as the last step before the target is published, its directory. None of this
// depends on the proof.
package inventory
