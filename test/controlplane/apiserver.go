// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// etcd returns the etcd process. It stores its data in the temporary folder and does not
// wait for the disk.
func (c *ControlPlane) etcd() (*Process, error) {
	var client, peer int
	if err := c.ports.takeAll(&client, &peer); err != nil {
		return nil, err
	}
	c.etcdURL = "http://" + address(client)
	peerURL := "http://" + address(peer)
	p := c.process(parts.Etcd,
		"--data-dir="+c.dir.file("etcd"),
		"--listen-client-urls="+c.etcdURL,
		"--advertise-client-urls="+c.etcdURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync",
		"--quota-backend-bytes=17179869184", // nothing is compacted: 10,000 Rollouts with a full history need this much
		"--log-level=warn",
	)
	p.ready = answersOK(http.DefaultClient, c.etcdURL+"/health")
	return p, nil
}

// apiServer returns the API server's process. RBAC is on. ServiceAccount admission is
// off: KWOK's pods need no tokens, and tests may create pods before a ServiceAccount
// exists.
func (c *ControlPlane) apiServer() (*Process, error) {
	if err := c.ports.takeAll(&c.apiPort); err != nil {
		return nil, err
	}
	if err := c.writeAPIServerKeys(); err != nil {
		return nil, err
	}
	if err := c.writeAuditPolicy(); err != nil {
		return nil, err
	}
	p := c.process(parts.APIServer,
		"--etcd-servers="+c.etcdURL,
		"--etcd-compaction-interval=0", // etcd keeps everything, for History
		"--bind-address="+loopback,
		"--advertise-address="+loopback,
		"--secure-port="+strconv.Itoa(c.apiPort),
		"--tls-cert-file="+c.dir.file("apiserver.crt"),
		"--tls-private-key-file="+c.dir.file("apiserver.key"),
		"--client-ca-file="+c.dir.file("ca.crt"),
		"--service-account-issuer=https://"+address(c.apiPort),
		"--service-account-key-file="+c.dir.file("service-account.key"),
		"--service-account-signing-key-file="+c.dir.file("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--anonymous-auth=false",
		"--delete-collection-workers=16", // tests that remove a thousand objects need not wait a thousand times
		"--endpoint-reconciler-type=none",
		"--audit-policy-file="+c.auditPolicy(),
		"--audit-log-path="+c.auditLog(),
		"--shutdown-delay-duration=0s",
	)
	p.ready = c.apiServerReady()
	return p, nil
}

func (c *ControlPlane) writeAPIServerKeys() error {
	pair, err := c.authority.server()
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": c.authority.pem, "apiserver.crt": pair.cert, "apiserver.key": pair.key}
	for name, content := range files {
		if err := os.WriteFile(c.dir.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write the API server's %s: %w", name, err)
		}
	}
	return writeKey(c.dir.file("service-account.key"))
}

// apiServerReady checks with the admin's certificate: anonymous requests are off.
func (c *ControlPlane) apiServerReady() func(context.Context) error {
	return func(ctx context.Context) error {
		pair, err := tls.X509KeyPair(c.admin.CertData, c.admin.KeyData)
		if err != nil {
			return fmt.Errorf("read the admin's certificate: %w", err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(c.authority.pem)
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		}}
		return answersOK(client, c.admin.Host+"/readyz")(ctx)
	}
}

// answersOK returns a readiness check that succeeds when the URL answers 200.
func answersOK(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		request.Close = true
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
		}
		return nil
	}
}
