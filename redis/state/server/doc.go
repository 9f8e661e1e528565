// Package server is what all commands share: the server that they change, how it reads their arguments, and the errors
// that it answers them with.
package server
