// Package audit is the log of every call: JSON lines, each carrying the hash of the one before.
//
// # Files
//
// A log is a folder (mode 0700) of files (mode 0600; 0400 once
// finished), one for each UTC day and one more each time a file would outgrow
// [Options.MaxBytes]:
//
//	audit-2026-11-20.jsonl
//	audit-2026-11-20.1.jsonl
//	audit-2026-11-21.jsonl
//	head
//
// Days and numbers only grow: when the clock is set back, lines go on into the
// newest file. When the next file cannot be made, or the old one not be marked as
// finished by its mode, they go on into the old one.
//
// # Lines
//
// A line is one JSON object in UTF-8 without spaces, ended by a line feed. Its
// keys stand in the order of [Record]; those that are empty are left out, but
// for seq, time, prev and hash, which every line has. The first line of a log
// has seq 1, each further line the next number, over all files. prev is the
// hash of the line before; in the first line it is 64 zeros. hash is always
// the last key:
//
//	hash = hex(SHA-256(the bytes of the line before `,"hash":`))
//
// Those bytes include prev, hence a hash vouches for everything before it.
// Without Helve, line n of a file is checked by
//
//	sed -n "${n}p" FILE | sed 's/,"hash":"[0-9a-f]*"}$//' | tr -d '\n' | sha256sum
//	sed -n "${n}p" FILE | jq -r .hash
//
// and its place in the chain by comparing .prev with .hash of the line before.
//
// # Head
//
// The file head has a fixed length and is overwritten after each line:
//
//	SEQ (20 digits) SPACE HASH (64) SPACE FILE (32, padded with spaces) LF
//
// It is what makes a cut at the end visible. The log may be ahead of the head
// by what a killed process had no time to note, never behind it. Who can write
// to the folder can also forge all of it: keep a copy of seq and hash
// elsewhere if that matters.
//
// # What survives
//
// A line is with the operating system, by one write, when [Log.Append]
// returns: killing the process at any moment loses no line that was
// acknowledged. Files are synced to the disk in the background at most
// [Options.SyncEvery] (one second) after a line was written, at rotation and
// by [Log.Close]: a power cut may lose the lines of that time, and is then
// reported like a cut at the end, since from the files alone the two are the
// same. With a negative SyncEvery each line is synced before Append returns,
// and before the head names it.
//
// What is repaired is never silent. The rest of a line that a killed process
// left is cut off by the next Open or Append, and a line of kind "recovered"
// tells in its reason what was found and how many bytes went. The same kind of
// line tells of lines missing at the end, of a missing head, and of lines that
// an earlier Append could not write. After lines have gone missing the chain
// goes on from where the head says that it was, so that [Verify] finds the gap
// for ever after.
//
// # Sharing
//
// Any number of processes may append to one folder, and make one chain: each
// append happens under an exclusive lock on the head. The folder must be on a
// file system where such locks work between all who write (a local disk).
package audit
