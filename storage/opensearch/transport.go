package opensearch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

// connections bounds what one process opens to the server.
const connections = 64

func transport(cfg Config) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:               nil, // documents go to the server that was named, nowhere else
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		MaxConnsPerHost:     connections,
		IdleConnTimeout:     time.Minute,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if cfg.CA != nil {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, errors.New("documents_ca: holds no certificate")
		}
	}
	return t, nil
}
