package bus

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// JournalStream is the stream with the records of a cell's journal; see storage/jetstream.
const JournalStream = "JOURNAL"

// KeyStream is the stream with the keys of the journal's erasable parts; see storage/jetstream.
const KeyStream = "KEYS"

// keyReached is the bucket's key for the position that the documents have reached.
const keyReached = "reached"

// TellReached reports to a cell that its documents contain all records before a position.
func TellReached(ctx context.Context, c Conn, position int64) error {
	kv, err := bucketOf(ctx, c)
	if err == nil {
		_, err = kv.Put(ctx, keyReached, strconv.AppendInt(nil, position, 10))
	}
	return err
}

// HearReached calls on with each position that TellReached reports, starting with the last one,
// until ctx ends or the connection is lost for good.
func HearReached(ctx context.Context, c Conn, on func(position int64)) error {
	kv, err := bucketOf(ctx, c)
	if err != nil {
		return err
	}
	w, err := kv.Watch(ctx, keyReached)
	if err != nil {
		return Fault("bucket "+Bucket, err)
	}
	defer func() { _ = w.Stop() }() // ctx ends it too
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			if !ok {
				return errors.New("bus: no more is heard of the recorder")
			}
			if e == nil { // all existing values have been delivered
				continue
			}
			if position, err := strconv.ParseInt(string(e.Value()), 10, 64); err == nil {
				on(position)
			}
		}
	}
}

func bucketOf(ctx context.Context, c Conn) (jetstream.KeyValue, error) {
	js, err := JetStream(c)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, Bucket)
	if err != nil {
		return nil, Fault("bucket "+Bucket, err)
	}
	return kv, nil
}

// Cell is the status of a cell.
type Cell struct {
	Groups   uint64   `json:"groups"` // of records, in the journal's stream
	Bytes    uint64   `json:"bytes"`
	Replicas int      `json:"replicas"`
	Leader   string   `json:"leader,omitempty"` // server of the stream
	Behind   []string `json:"behind,omitempty"` // servers that do not have all of it
	Router   string   `json:"router"`           // the router that decides; empty: none
	Recorder string   `json:"recorder"`         // the active recorder; empty: none
	Reached  int64    `json:"reached"`          // records that the documents have
}

// LookAtCell reads the status of a cell; c must be a router's.
func LookAtCell(ctx context.Context, c Conn) (out Cell, err error) {
	js, err := JetStream(c)
	if err != nil {
		return out, err
	}
	stream, err := js.Stream(ctx, JournalStream)
	if err != nil {
		return out, Fault("stream "+JournalStream, err)
	}
	info := stream.CachedInfo()
	out.Groups, out.Bytes, out.Replicas = info.State.Msgs, info.State.Bytes, info.Config.Replicas
	if info.Cluster != nil {
		out.Leader = info.Cluster.Leader
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				out.Behind = append(out.Behind, r.Name)
			}
		}
	}
	kv, err := bucketOf(ctx, c)
	if err != nil {
		return out, err
	}
	for key, take := range map[string]func(string){
		LeaseRouter:   func(v string) { out.Router = v },
		LeaseRecorder: func(v string) { out.Recorder = v },
		keyReached:    func(v string) { out.Reached, _ = strconv.ParseInt(v, 10, 64) },
	} {
		e, err := kv.Get(ctx, key)
		if err == nil {
			take(string(e.Value()))
		} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return out, err
		}
	}
	return out, nil
}

// Document is a small document of a cell that one process writes and its successor reads. It is in
// the cell's bucket.
type Document struct {
	conn Conn
	name string
}

// NewDocument names a document; c must be a router's.
func NewDocument(c Conn, name string) Document { return Document{c, name} }

// Get returns the document; nil: none was put.
func (d Document) Get(ctx context.Context) ([]byte, error) {
	kv, err := bucketOf(ctx, d.conn)
	if err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, d.name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, Fault("bucket "+Bucket, err)
	}
	return e.Value(), nil
}

// Put replaces the document. It is on most of the servers when Put returns.
func (d Document) Put(ctx context.Context, doc []byte) error {
	kv, err := bucketOf(ctx, d.conn)
	if err != nil {
		return err
	}
	if _, err = kv.Put(ctx, d.name, doc); err != nil {
		return Fault("bucket "+Bucket, err)
	}
	return nil
}
