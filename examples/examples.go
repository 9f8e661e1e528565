// Package examples has the manifests and scripts of this directory, which kvferry fleet fills in.
package examples

import "embed"

// Files are the examples, by path.
//
//go:embed kubernetes slurm argo
var Files embed.FS
