# layer: root, landlock, seccomp
attempt("symlink", os.symlink, SECRET, "link")
attempt("read link", open, "link")
attempt("hard link", os.link, SECRET, "hard")
attempt("read hard link", open, "hard")
attempt("rename in", os.rename, SECRET, "stolen")
attempt("rename out", os.rename, ".", "/escaped")
