// Package examples has the app files of this folder that the binary carries.
package examples

import _ "embed"

// Demo is demo.yaml: an app that needs neither a model nor a network.
//
//go:embed demo.yaml
var Demo []byte
