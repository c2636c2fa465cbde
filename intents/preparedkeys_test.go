package intents

import (
	"crypto/ed25519"
	"sync"
	"testing"
)

// TestVectorsPrepared: each vector has the same answer when every key of the key
// set is prepared.
func TestVectorsPrepared(t *testing.T) {
	defer prepared.forget()
	for _, k := range vectorKeys() {
		one, err := prepareKey(publicKey(k.Public))
		if err != nil {
			t.Fatal(err)
		}
		prepared.put(one)
	}
	runVectors(t, func() {})
	if prepared.get(publicKey(vTask.Public())) == nil || prepared.get(publicKey(vGateway.Public())) == nil {
		t.Error("the keys were not prepared to the end")
	}
}

// TestPreparedKeysAreUsed gives keys the tables of other keys: then orders and
// their grants do not verify, and nothing else is asked.
func TestPreparedKeysAreUsed(t *testing.T) {
	defer prepared.forget()
	u, err := Parse([]byte(plainOrder()))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []Signer{vTask, vGateway} {
		prepared.forget()
		if _, err := u.Verify(testVerifier()); err != nil {
			t.Fatal(err)
		}
		wrong := *readied(t, vStranger.Public())
		wrong.public = publicKey(key.Public())
		prepared.put(&wrong)
		if _, err := u.Verify(testVerifier()); CodeOf(err) != SignatureInvalid && CodeOf(err) != GrantInvalid {
			t.Errorf("%s: %v", key.Role, err)
		}
	}
}

// TestPreparedAfterMany: so many accepted signatures prepare a key. Refused ones
// do not count, and a key that admission refuses is never prepared.
func TestPreparedAfterMany(t *testing.T) {
	var p preparedKeys
	message := []byte("order")
	public, sig := vManager.Public(), ed25519.Sign(vManager.Key.(ed25519.PrivateKey), message)
	ready := func() bool { return p.get(publicKey(public)) != nil }
	for range 2 * prepareAfter {
		if p.verify(public, message, make([]byte, 64)) || p.verify(public[:31], message, sig) {
			t.Fatal("a false signature is accepted")
		}
	}
	for i := range prepareAfter {
		if ready() {
			t.Fatalf("prepared after %d signatures", i)
		}
		if !p.verify(public, message, sig) {
			t.Fatalf("signature %d is refused", i)
		}
	}
	if !ready() || len(p.counted) != 0 {
		t.Fatalf("not prepared, %d counted", len(p.counted))
	}
	if !p.verify(public, message, sig) || p.verify(public, []byte("another"), sig) {
		t.Error("the prepared key has another opinion")
	}
	weak := ed25519.PublicKey(unhex(t, orderEight))
	sig = forge(weak, nil, message)
	for range 2 * prepareAfter {
		if !p.verify(weak, message, sig) {
			t.Fatal("not as crypto/ed25519 says")
		}
	}
}

// TestPreparedKeysAreBounded: of both kinds there are never more than the most,
// and a key that signs on is there again.
func TestPreparedKeysAreBounded(t *testing.T) {
	var p preparedKeys
	name := func(i int) publicKey { return publicKey{byte(i), byte(i >> 8), 1} }
	for i := range 3*maxPrepared + 1 {
		p.put(&preparedKey{public: name(i)})
		if n := len(p.ready); n > maxPrepared || p.get(name(i)) == nil {
			t.Fatalf("%d keys are prepared, and the last of them %v", n, p.get(name(i)))
		}
	}
	for i := range 2*maxCounted + 1 {
		p.count(name(i))
		if n := len(p.counted); n > maxCounted {
			t.Fatalf("%d keys are counted", n)
		}
	}
	if p.get(name(0)) != nil {
		t.Error("the first key still is prepared")
	}
	if n := p.count(name(2 * maxCounted)); n != 2 {
		t.Errorf("the last key has %d signatures, not 2", n)
	}
}

// TestPreparedKeysTogether: many goroutines verify with many keys, right and
// wrong, while the keys are prepared and forgotten.
func TestPreparedKeysTogether(t *testing.T) {
	var p preparedKeys
	signers := []Signer{vManager, vTask, vGateway, vRouter}
	message := []byte("order")
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2 * prepareAfter {
				key := signers[(g+i)%len(signers)]
				sig := ed25519.Sign(key.Key.(ed25519.PrivateKey), message)
				if !p.verify(key.Public(), message, sig) || p.verify(key.Public(), []byte("another"), sig) {
					t.Errorf("%s: a false verdict", key.Role)
				}
				if g == 0 && i == prepareAfter {
					p.forget()
				}
			}
		})
	}
	all.Wait()
}
