// Package sentry replaces the client of a server that collects errors. Pebble's error package can make reports for it;
// kvferry sends no reports, so they have few fields and are dropped.
package sentry

// EventID names a report.
type EventID string

// Event is a report.
type Event struct {
	Extra      map[string]any
	Tags       map[string]string
	Exception  []Exception
	Message    string
	ServerName string
}

// Exception is an error in a report.
type Exception struct {
	Type, Value, Module string
	Stacktrace          *Stacktrace
}

// Stacktrace is where an error was made.
type Stacktrace struct{ Frames []Frame }

// Frame is a function of a Stacktrace.
type Frame struct {
	Function, Module, Filename, AbsPath, ContextLine, Package string
	Lineno, Colno                                             int
	PreContext, PostContext                                   []string
	InApp                                                     bool
	Vars                                                      map[string]any
}

// NewEvent returns an empty report.
func NewEvent() *Event { return &Event{Extra: map[string]any{}, Tags: map[string]string{}} }

// CaptureEvent drops a report.
func CaptureEvent(*Event) *EventID { return nil }
