// Package filelock takes advisory locks on open files, for processes that share a folder, and makes the names in a folder durable.
package filelock
