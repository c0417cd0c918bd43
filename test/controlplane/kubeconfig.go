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

// AddUser makes credentials for a user whom the API server then knows by this
// name and these groups; what the user may do is for RBAC to say. It returns
// the path of a kubeconfig file.
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

// writeWhole writes a file of which nobody ever reads a part, though another
// goroutine write it at the same time.
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

// RESTConfigFor is a client configuration for a user, as AddUser makes them.
func (c *ControlPlane) RESTConfigFor(name string, groups ...string) (*rest.Config, error) {
	return c.userConfig(name, groups)
}

// userConfig has no client-side rate limit: API Priority and Fairness is there
// for that, and a test should see what its subject does, not what it waits for.
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

// fileName keeps what is safe in the name of a file; a user's name may hold colons.
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
