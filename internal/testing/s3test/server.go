//go:build unix

// Package s3test starts S3 servers of its own on loopback: versitygw, which
// keeps objects as files. .ci/integration builds it; a test that finds none
// fails, it is never skipped.
package s3test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// startTime bounds how long a server may take until it answers.
const startTime = time.Minute

// ports is how many are tried: another process may take one that was free.
const ports = 5

// Server is one process with a data directory of its own.
type Server struct {
	URL         string // endpoint
	Key, Secret string
	CA          []byte // PEM; of a server with TLS
	Root        string // where its objects are files

	dir string
	cmd *exec.Cmd
}

// Start starts a server with one bucket and waits until it answers.
func Start(ctx context.Context, bucket string, tls bool) (s *Server, err error) {
	program := os.Getenv("WRIT_S3_SERVER")
	if program == "" {
		return nil, errors.New(`there is no S3 server to start: run "make integration", or set WRIT_S3_SERVER to a versitygw`)
	}
	s = &Server{Key: rand.Text(), Secret: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "s3-"); err != nil {
		return nil, err
	}
	s.Root = filepath.Join(s.dir, "objects")
	sidecar := filepath.Join(s.dir, "attributes") // not every file system has attributes of its own
	for _, dir := range []string{s.Root, sidecar} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	var args []string
	if tls {
		cert, key := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
		if s.CA, err = certificate(cert, key); err != nil {
			return nil, err
		}
		args = []string{"--cert", cert, "--key", key}
	}
	args = append(args, "posix", "--sidecar", sidecar, s.Root)
	for range ports {
		if err = s.run(ctx, program, args, tls); err == nil {
			return s, s.makeBucket(ctx, bucket)
		}
	}
	return nil, err
}

// run starts the process on a free port, below those that a system gives to whoever asks for
// any: nobody else listens there by chance until the server does.
func (s *Server) run(ctx context.Context, program string, args []string, tls bool) error {
	port := 10000 + mathrand.IntN(20000) //nolint:gosec // G404: a port is no secret
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	s.URL = "http://" + addr
	if tls {
		s.URL = "https://" + addr
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()                                                                      // the process has its own
	s.cmd = exec.Command(program, append([]string{"--port", addr, "--quiet"}, args...)...) //nolint:gosec,noctx // G204: a program that we built, which outlives ctx
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "ROOT_ACCESS_KEY=" + s.Key, "ROOT_SECRET_KEY=" + s.Secret}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	exited := make(chan struct{})
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // its output says more
		close(exited)
	}(s.cmd)
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if _, err = new(net.Dialer).DialContext(ctx, "tcp", addr); err == nil {
			return nil
		}
		select {
		case <-exited:
			s.cmd = nil
			output, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the S3 server ended: %s", output)
		case <-ctx.Done():
			return fmt.Errorf("the S3 server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) makeBucket(ctx context.Context, bucket string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	return c.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
}

// Client of the server, with all rights.
func (s *Server) Client() (*minio.Client, error) {
	at := minio.Options{Creds: credentials.NewStaticV4(s.Key, s.Secret, "")}
	transport, err := minio.DefaultTransport(s.CA != nil)
	if err != nil {
		return nil, err
	}
	host := s.URL[len("http://"):]
	if s.CA != nil {
		host, at.Secure = s.URL[len("https://"):], true
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(s.CA)
	}
	at.Transport = transport
	return minio.New(host, &at)
}

// Close ends the process and removes its data.
func (s *Server) Close() error {
	if s.cmd != nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	return os.RemoveAll(s.dir)
}

// certificate for 127.0.0.1 that signs itself.
func certificate(certFile, keyFile string) (ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return ca, errors.Join(os.WriteFile(certFile, ca, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
