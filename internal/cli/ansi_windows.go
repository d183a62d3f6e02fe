package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// prepareTerminal makes a console understand the escape sequences that boards
// are drawn with. A console too old for that is drawn on with plain lines.
func prepareTerminal(f *os.File) bool {
	h := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
