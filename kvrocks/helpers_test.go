package kvrocks_test

import (
	"kvferry/internal/formattest"
	"kvferry/store"
)

var bytewise = store.Bytewise

// reportTo are options that report what is found when a store is opened.
func reportTo(f *formattest.Findings) store.Options { return store.Options{Report: f.Report} }
