// Package diff compares the logs of two runs: a pure function of what they say,
// apart from ids and times (spec v2 runs.md §Diff and ancestry). It reads both
// logs side by side and holds one event of each at a time.
//
// It must not know where logs are kept or who may read them.
package diff
