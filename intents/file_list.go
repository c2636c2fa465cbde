package intents

// FileList is the list by which files are kept and named as one: the JCS map of path to the digest
// of the content. A path that is not UTF-8 is an error.
func FileList(files map[string][]byte) ([]byte, error) {
	digests := make(map[string]string, len(files))
	for name, content := range files {
		digests[name] = Digest(content)
	}
	return marshalCanonical(digests)
}
