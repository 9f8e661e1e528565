// Package examples has the manifests of this directory, which kvferry fleet fills in.
package examples

import "embed"

// Files are the examples, by path.
//
//go:embed kubernetes argo
var Files embed.FS
