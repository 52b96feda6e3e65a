package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for servers on 127.0.0.1 and for clients; they are valid for an hour.
type Authority struct {
	File string // contains its own certificate

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// NewAuthority creates an authority with its own folder.
func NewAuthority(t testing.TB) *Authority {
	a := &Authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	a.cert = a.sign("authority", func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage, c.BasicConstraintsValid = true, x509.KeyUsageCertSign, true
	}, &a.key.PublicKey)
	a.File = a.write("ca.crt", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(name string, change func(*x509.Certificate), public *ecdsa.PublicKey) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(c)
	parent := a.cert
	if parent == nil {
		parent = c
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

func (a *Authority) write(name, kind string, data []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// Issue writes a certificate and its key.
func (a *Authority) Issue(name string) (cert, key string) {
	k := a.newKey()
	c := a.sign(name, func(*x509.Certificate) {}, &k.PublicKey)
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", c.Raw), a.write(name+".key", "EC PRIVATE KEY", raw)
}

// Client returns the TLS configuration of a client that trusts the authority, with a certificate by signer, which may
// be another authority; without one if signer is nil.
func (a *Authority) Client(signer *Authority) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	if signer != nil {
		cert, key := signer.Issue("client")
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
