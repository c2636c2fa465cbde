package bus

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/egress"
)

// words maps errors of the library to plain words.
var words = []struct {
	errs []error
	says string
	mend egress.Mend
}{
	{[]error{nats.ErrNoServers}, "no server answers there", egress.Start},
	{[]error{nats.ErrTimeout, nats.ErrStaleConnection}, "no answer in time", egress.Start},
	{[]error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrDisconnected, nats.ErrConnectionReconnecting}, "the connection is closed", egress.Start},
	{[]error{nats.ErrReconnectBufExceeded}, "the connection is lost, and as much waits for it as may", egress.Start},
	{[]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired}, "it does not take the credentials", egress.Secret},
	{[]error{nats.ErrNkeysNotSupported}, "it knows no keys of users (NKeys)", egress.Name},
	{[]error{nats.ErrPermissionViolation}, "it does not permit this with these credentials", egress.Secret},
	{[]error{nats.ErrSecureConnRequired}, "it wants TLS", egress.Trust},
	{[]error{nats.ErrSecureConnWanted}, "it speaks no TLS", egress.Name},
	{[]error{nats.ErrNoInfoReceived}, "it is no NATS server", egress.Name},
	{[]error{jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount}, "it keeps nothing: JetStream is off there, or for this account", egress.Look},
	{[]error{&jetstream.APIError{ErrorCode: codeNoPeers}, &jetstream.APIError{ErrorCode: codeNoCluster}}, "its cluster has fewer servers than replicas are to be kept: start the others (bus keeps one replica for each server that it names or finds, three at most; blobs as its replicas= says)", egress.Name},
	{[]error{nats.ErrNoResponders, jetstream.ErrNoStreamResponse}, "nobody there keeps anything: JetStream is off, or chooses a leader", egress.Wait},
	{[]error{nats.ErrMaxPayload}, "the message is larger than it takes", egress.Look},
	{[]error{nats.ErrSlowConsumer}, "messages came faster than this process reads, and some are lost", egress.Wait},
}

// Plain explains in plain words why NATS, or a connection to it, failed. It returns other errors
// unchanged. The result wraps err.
func Plain(err error) error {
	for _, w := range words {
		for _, known := range w.errs {
			if errors.Is(err, known) {
				return &egress.ReasonError{Message: w.says + detail(err, known), Mend: w.mend, Err: err}
			}
		}
	}
	return egress.Plain(err)
}

// detail is what a server reports beyond the library's text, such as the subject that is not
// permitted.
func detail(err, known error) string {
	if strings.EqualFold(err.Error(), known.Error()) {
		return ""
	}
	return " (" + strings.TrimPrefix(err.Error(), "nats: ") + ")"
}

// Fault explains in plain words why servers could not store what they should.
func Fault(what string, err error) error {
	return egress.Server{
		Name: what + " of the NATS servers", Unaffected: "records that were acknowledged are kept", Address: "bus (--bus)",
		Secret: "bus_keys (--bus-keys)", CA: "bus_ca (--bus-ca)", Try: "writ admin cell status",
	}.Fault(Plain(err))
}
