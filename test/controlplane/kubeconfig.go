// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const adminGroup = "system:masters"

// AddUser makes credentials that identify a user with this name and these groups to the
// API server. RBAC defines the user's permissions. AddUser returns the path of a
// kubeconfig file.
func (c *ControlPlane) AddUser(name string, groups ...string) (string, error) {
	config, err := c.userConfig(name, groups)
	if err != nil {
		return "", err
	}
	path := c.dir.file("kubeconfig-" + fileName(name))
	if err := writeWhole(path, kubeconfig(config)); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

// writeWhole writes a file atomically: no reader ever sees a part of it, even if another
// goroutine writes it at the same time.
func writeWhole(path string, config clientcmdapi.Config) error {
	content, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close(), os.Rename(f.Name(), path))
}

// RESTConfigFor returns a client configuration for a user, with credentials like those of
// AddUser.
func (c *ControlPlane) RESTConfigFor(name string, groups ...string) (*rest.Config, error) {
	return c.userConfig(name, groups)
}

// userConfig sets no client-side rate limit. API Priority and Fairness limits requests,
// and a test should observe the work of the tested program, not its waiting.
func (c *ControlPlane) userConfig(name string, groups []string) (*rest.Config, error) {
	pair, err := c.authority.user(name, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + address(c.apiPort),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.authority.pem, CertData: pair.cert, KeyData: pair.key,
		},
		QPS: -1,
	}, nil
}

func kubeconfig(config *rest.Config) clientcmdapi.Config {
	const name = "controlplane"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	return *k
}

// fileName replaces characters that are not safe in the name of a file. A user's name may
// contain colons.
func fileName(name string) string {
	safe := []rune(name)
	for i, r := range safe {
		switch r {
		case '/', ':', ' ':
			safe[i] = '-'
		}
	}
	return string(safe)
}
