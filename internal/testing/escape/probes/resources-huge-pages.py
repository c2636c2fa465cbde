# layer: seccomp
import mmap
HUGETLB, HUGEPAGE, COLLAPSE = 0x40000, 14, 25
attempt("map huge pages", lambda: mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | HUGETLB))
page = mmap.mmap(-1, 4 << 20)
attempt("make them huge", page.madvise, HUGEPAGE)
attempt("collapse", page.madvise, COLLAPSE)
