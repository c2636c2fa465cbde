// Package docs writes the pages of docs/ that say what the code says: the codes,
// the catalog and the settings. `make generate` writes them; a test keeps them in step.
package docs

//go:generate go run ./write ../../docs

// Page is one generated file.
type Page struct {
	Name string // below docs/
	Text []byte
}

// Pages writes every generated page.
func Pages() ([]Page, error) {
	catalog, err := catalogPage()
	if err != nil {
		return nil, err
	}
	return []Page{{"codes.md", codesPage()}, {"catalog.md", catalog}, {"configuration.md", configurationPage()}}, nil
}

const generated = "<!-- Made from the code by `make generate`: edits are lost. -->\n\n"
