//go:build !race

package main

// raceEnabled says that this is the race detector's build, which takes ten times as long.
const raceEnabled = false
