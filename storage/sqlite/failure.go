package sqlite

import "sync/atomic"

// failure is the error after which nothing works any more: the first one stays.
type failure struct{ first atomic.Pointer[error] }

// set reports whether err was the first.
func (f *failure) set(err error) bool { return f.first.CompareAndSwap(nil, &err) }

func (f *failure) get() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}
