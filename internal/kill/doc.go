// Package kill holds black-box tests that end the built binary with SIGKILL at
// random moments, start it again on the same data folder, and hold what it then
// says against what it had promised: no accepted run lost, no gap or second
// writing in a log, no effect repeated once its outcome was recorded, no
// acknowledged answer forgotten.
//
// It knows the host only by its command line and its wire, and it has no code
// that anything imports. FERMATA_KILLS sets how often the long test kills (4 if
// unset), FERMATA_KILL_SEED repeats a run's choices, and FERMATA_KILL_BINARY
// names a binary to test in place of the one built from this tree.
package kill
