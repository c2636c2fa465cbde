// Write puts the generated pages into a directory (make generate).
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/docs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	pages, err := docs.Pages()
	if err != nil {
		return err
	}
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(dir, p.Name), p.Text, 0o644); err != nil { //nolint:gosec // pages to be read
			return err
		}
	}
	return nil
}
