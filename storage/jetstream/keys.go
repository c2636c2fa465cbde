package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/group"
)

// KeyStream is the name of the stream with the keys of erasable parts.
const KeyStream = bus.KeyStream

const (
	subjectKeys = "keys."
	subjectKey  = subjectKeys + ">"
)

const (
	// keysPerFile is how many keys a file has, which is one message of 16 KiB.
	keysPerFile = 512
	// keyFilesCached is how many files a process keeps in memory.
	keyFilesCached = 256
)

// keyFiles are the keys of the erasable parts of records. Slot s is key s%keysPerFile of file
// s/keysPerFile. A file is the last message of its subject, keys.N, and N is the sequence that
// it was stored at first. Safe for concurrent use.
//
// Durability: a file is acknowledged before its first key is used. Each process stores files of
// its own; a crash wastes the keys that are left. An erasure stores the file anew, and has
// the servers overwrite the old message.
type keyFiles struct {
	js     jetstream.JetStream
	stream jetstream.Stream

	file uint64 // what follows is the writer's: the file that new keys are of
	keys []byte // those of it that are left

	erased atomic.Uint64 // how often keys were erased, as far as this process knows

	mu     sync.Mutex // guards cache and recent
	cache  map[uint64]keyFile
	recent []uint64 // the cached files, oldest first
}

// keyFile is a version of a file.
type keyFile struct {
	seq  uint64
	keys []byte
}

func newKeyFiles(js jetstream.JetStream, s jetstream.Stream) *keyFiles {
	return &keyFiles{js: js, stream: s, cache: make(map[uint64]keyFile)}
}

func keySubject(file uint64) string { return subjectKeys + strconv.FormatUint(file, 10) }

// fresh returns a key that nothing uses, and stores a file if none is left. The writer calls it.
func (k *keyFiles) fresh(ctx context.Context) (slot uint64, key codec.Key, err error) {
	if len(k.keys) == 0 {
		if err := k.make(ctx); err != nil {
			if isFull(err) {
				err = errors.Join(storage.ErrFull, err)
			}
			return 0, key, fmt.Errorf("keys of erasable parts: %w", failed(err))
		}
	}
	slot = (k.file+1)*keysPerFile - uint64(len(k.keys)/codec.KeySize)
	copy(key[:], k.keys)
	k.keys = k.keys[codec.KeySize:]
	return slot, key, nil
}

// make stores a file, under the sequence that comes next. If it is not known whether it was
// stored, another one is: nothing uses the first.
func (k *keyFiles) make(ctx context.Context) error {
	keys := codec.NewKeys(keysPerFile)
	failpoint.Hit(failpoint.KeysMaking)
	file, err := patiently(ctx, func(ctx context.Context) (uint64, error) {
		info, err := k.stream.Info(ctx)
		if err != nil {
			return 0, err
		}
		next := info.State.LastSeq + 1
		_, err = k.js.Publish(ctx, keySubject(next), keys, jetstream.WithExpectLastSequence(next-1), jetstream.WithExpectStream(KeyStream), jetstream.WithRetryAttempts(0))
		if isBehind(err) {
			err = nats.ErrNoResponders // another process was first: again
		}
		return next, err
	})
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.KeysMade)
	k.file, k.keys = file, slices.Clone(keys)
	k.remember(file, keyFile{file, keys})
	return nil
}

// remember a version of a file, unless a later one is known.
func (k *keyFiles) remember(file uint64, f keyFile) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, cached := k.cache[file]
	if cached && known.seq > f.seq {
		return
	}
	if !cached {
		if k.recent = append(k.recent, file); len(k.recent) > keyFilesCached {
			delete(k.cache, k.recent[0])
			k.recent = k.recent[1:]
		}
	}
	k.cache[file] = f
}

func (k *keyFiles) cached(file uint64) (f keyFile, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, found = k.cache[file]
	return f, found
}

// of is how the key of a slot is read, for as long as ctx lasts.
func (k *keyFiles) of(ctx context.Context) func(slot uint64) (codec.Key, error) {
	return func(slot uint64) (codec.Key, error) {
		file := slot / keysPerFile
		f, found := k.cached(file)
		if !found {
			var err error
			if f, err = k.read(ctx, file); err != nil {
				return codec.Key{}, err
			}
			k.remember(file, f)
		}
		at := slot % keysPerFile * codec.KeySize
		return codec.Read(f.keys[at : at+codec.KeySize])
	}
}

// read a file, however long the servers need; ErrLost: they have all messages up to the one
// that it was, and not this one.
func (k *keyFiles) read(ctx context.Context, file uint64) (keyFile, error) {
	for {
		late, cancel := context.WithTimeout(ctx, publishTime)
		m, err := k.stream.GetLastMsgForSubject(late, keySubject(file))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			var info *jetstream.StreamInfo
			if info, err = k.stream.Info(late); err == nil && info.State.LastSeq >= file {
				cancel()
				return keyFile{}, fmt.Errorf("%w: message %d of stream %s is missing", codec.ErrLost, file, KeyStream)
			}
		}
		cancel()
		switch {
		case m != nil && err == nil && len(m.Data) != keysPerFile*codec.KeySize:
			return keyFile{}, fmt.Errorf("%w: message %d of stream %s has no keys", codec.ErrLost, file, KeyStream)
		case m != nil && err == nil:
			return keyFile{m.Sequence, m.Data}, nil
		case err != nil && errors.Is(err, nats.ErrConnectionClosed):
			return keyFile{}, failed(err)
		case clock.Sleep(ctx, retryPause) != nil:
			return keyFile{}, ctx.Err()
		}
	}
}

// erase overwrites keys with zeros.
//
// A crash in it leaves some of the keys, or messages that have them beside the last one of
// their file; erasing again removes both.
func (k *keyFiles) erase(ctx context.Context, slots []uint64) error {
	for file, some := range codec.ByFile(slots, keysPerFile) {
		if err := k.zero(ctx, file, some); err != nil && !errors.Is(err, codec.ErrLost) {
			return fmt.Errorf("erase keys: %w", err)
		}
	}
	return nil
}

// zero stores a file without some of its keys, right after the version that it has read.
func (k *keyFiles) zero(ctx context.Context, file uint64, slots []uint64) error {
	for {
		old, err := k.read(ctx, file)
		if err != nil {
			return err
		}
		keys, changed := slices.Clone(old.keys), false
		for _, slot := range slots {
			at := slot % keysPerFile * codec.KeySize
			key := keys[at : at+codec.KeySize]
			changed = changed || !errors.Is(second(codec.Read(key)), codec.ErrErased)
			clear(key)
		}
		if !changed {
			k.replaced(file, old)
			return k.overwrite(ctx, file, old.seq)
		}
		failpoint.Hit(failpoint.KeysErasing)
		late, cancel := context.WithTimeout(ctx, publishTime)
		ack, err := k.js.Publish(late, keySubject(file), keys, jetstream.WithExpectLastSequencePerSubject(old.seq), jetstream.WithExpectStream(KeyStream), jetstream.WithRetryAttempts(0))
		cancel()
		switch {
		case err == nil:
			failpoint.Hit(failpoint.KeysErased)
			k.replaced(file, keyFile{ack.Sequence, keys})
			return k.overwrite(ctx, file, ack.Sequence)
		case isFull(err), ctx.Err() != nil, errors.Is(err, nats.ErrConnectionClosed):
			return failed(err)
		case clock.Sleep(ctx, retryPause) != nil: // it may be stored: the next version shows it
			return ctx.Err()
		}
	}
}

// replaced has a version of a file, in which keys are erased, be read from now on.
func (k *keyFiles) replaced(file uint64, f keyFile) {
	k.remember(file, f)
	k.erased.Add(1)
}

func second[A any](_ A, err error) error { return err }

// overwrite overwrites the messages of a file before the last one. Another process may do the
// same.
func (k *keyFiles) overwrite(ctx context.Context, file, last uint64) error {
	for from := file; from < last; {
		m, err := k.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(keySubject(file)))
		if err != nil {
			return failed(err)
		}
		if m.Sequence < last {
			if err := k.stream.SecureDeleteMsg(ctx, m.Sequence); err != nil {
				if _, again := k.stream.GetMsg(ctx, m.Sequence); !errors.Is(again, jetstream.ErrMsgNotFound) {
					return failed(err)
				}
			}
		}
		from = m.Sequence + 1
	}
	return nil
}

// follow calls rewritten for each file that is stored anew from now on, until ctx ends.
func (k *keyFiles) follow(ctx context.Context, rewritten func()) error {
	c, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		info, err := k.stream.Info(ctx)
		if err != nil {
			return nil, err
		}
		return k.js.OrderedConsumer(ctx, KeyStream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: info.State.LastSeq + 1})
	})
	if err != nil {
		return failed(err)
	}
	running, err := c.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		file, err2 := strconv.ParseUint(strings.TrimPrefix(m.Subject(), subjectKeys), 10, 64)
		if err != nil || err2 != nil || meta.Sequence.Stream == file {
			return // a new one
		}
		k.replaced(file, keyFile{meta.Sequence.Stream, m.Data()})
		rewritten()
	})
	if err != nil {
		return failed(err)
	}
	context.AfterFunc(ctx, running.Stop)
	return nil
}

// ErrClosed is the error of every call after Close.
var ErrClosed = group.ErrClosed

// Erase destroys the keys of records; see storage.Eraser and the package comment. No message of
// the journal changes.
func (j *Journal) Erase(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Erasable })
}

// EraseTransient erases the part transient of records; see storage.Eraser.
func (j *Journal) EraseTransient(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Transient })
}

func (j *Journal) erase(ctx context.Context, positions []int64, which func(codec.Slots) uint64) error {
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.Fresh(ctx); err != nil { // another router may have written the record
		return err
	}
	var slots []uint64
	for _, at := range positions {
		_, g, err := j.group(ctx, at)
		if err != nil {
			return fmt.Errorf("erase record %d: %w", at, err)
		}
		if slot := which(g.slots[at-g.First]); slot != 0 {
			slots = append(slots, slot)
		}
	}
	if err := j.stream.keys.erase(ctx, slots); err != nil {
		return err
	}
	j.dropCache()
	return nil
}

// dropCache has records be read from the stream again, where parts were erased.
func (j *Journal) dropCache() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.cache = cache{}
	j.options.OnErased()
}
