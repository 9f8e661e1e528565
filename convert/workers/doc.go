// Package workers runs the tasks of a plan beside each other and divides the memory among them: how much each may use for its
// buffers, and how much it may be handed at once while others run. It does not know what tasks do.
package workers
