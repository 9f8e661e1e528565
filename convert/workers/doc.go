// Package workers runs the tasks of a plan in parallel and divides the memory among them: the size of each task's
// buffers, and the amount of data it may receive at once while others run. It does not know the work of a task.
package workers
