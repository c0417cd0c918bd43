// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// The Secrets of the controller in a cluster whose environments report to a registry.
const (
	SigningKeySecret  = "promotion-signing-key"
	TrustedKeysSecret = "promotion-keys"
)

// requeueInterval is the shortest that an Environment can have.
const requeueInterval = 10 * time.Second

// KeyPair has the keys of a cluster, in PEM. Private signs what its environments report,
// and others verify that with Public.
type KeyPair struct{ Private, Public []byte }

// NewKeyPair makes the keys of a cluster.
func NewKeyPair() (KeyPair, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return KeyPair{}, fmt.Errorf("make a key: %w", err)
	}
	signs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a private key: %w", err)
	}
	verifies, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a public key: %w", err)
	}
	return KeyPair{
		Private: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: signs}),
		Public:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: verifies}),
	}, nil
}

// Secret returns the Secret that a controller signs with.
func (k KeyPair) Secret(namespace string) *corev1.Secret {
	return secretOf(namespace, SigningKeySecret, map[string][]byte{"identity.key": k.Private})
}

// TrustedKeys returns a Secret with the public keys of other clusters, by their names.
func TrustedKeys(namespace string, keys map[string]KeyPair) *corev1.Secret {
	data := map[string][]byte{}
	for cluster, pair := range keys {
		data[cluster+".pub"] = pair.Public
	}
	return secretOf(namespace, TrustedKeysSecret, data)
}

func secretOf(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// ReportFlags returns the flags of the controller in a cluster with a name that reports to
// a registry and reads the reports of others.
func ReportFlags(cluster string) []string {
	return []string{"--cluster-name=" + cluster, "--signing-key-secret=" + SigningKeySecret, "--trusted-keys-secret=" + TrustedKeysSecret}
}

// Reporting makes an Environment report to a repository, and read the reports of others.
func Reporting(e *environmentsv1.Environment, repository string) *environmentsv1.Environment {
	e.Spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Project: repository, Insecure: true}
	e.Spec.RequeueInterval = &metav1.Duration{Duration: requeueInterval}
	return e
}

// Elsewhere returns the application's environment in another cluster, as an upstream that
// reports to a repository.
func (a App) Elsewhere(environment, cluster, repository string) environmentsv1.Upstream {
	return environmentsv1.Upstream{
		Environment: environment, Namespace: a.Namespace, Rollout: a.Name, Repository: repository, Cluster: cluster,
	}
}
