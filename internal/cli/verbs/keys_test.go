// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// controllerWith returns the Deployment of a controller with these flags.
func controllerWith(namespace string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rollout-controller", Labels: installation.PodLabels}}
	d.Spec.Template.Labels = installation.PodLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "controller:v1", Args: args}}
	return d
}

func secretWith(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}, Data: data}
}

// fingerprint is that of a key, which is another one in each run.
var fingerprint = regexp.MustCompile(`SHA256:[A-Za-z0-9+/=]+`)

func withoutFingerprints(text string) string { return fingerprint.ReplaceAllString(text, "KEY") }

// manifestIn parses the only manifest in a text.
func manifestIn(t *testing.T, text string) (secret corev1.Secret, data map[string][]byte) {
	t.Helper()
	mustSucceed(t, yaml.UnmarshalStrict([]byte(text), &secret))
	data = map[string][]byte{}
	for entry, content := range secret.StringData {
		data[entry] = []byte(content)
	}
	return secret, data
}

func (m *inMemory) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	mustSucceed(t, m.client.Get(t.Context(), client.ObjectKey{Namespace: fixture.Namespace, Name: name}, secret))
	return secret.Data
}

func TestKeysCreateStoresThePrivateKeyAndPrintsThePublicOne(t *testing.T) {
	for _, algorithm := range []string{"ed25519", "ECDSA"} {
		m := newInMemory(t, controllerWith(fixture.Namespace))
		got := m.run(t, "keys", "create", "--cluster-name", "staging-eu", "--algorithm", algorithm)
		if strings.Contains(got.Out+got.Err, "PRIVATE") {
			t.Fatalf("the private key is shown: %v", got)
		}
		key, err := report.ParseSigningKey(m.secret(t, "promotion-signing-key")["identity.key"])
		mustSucceed(t, err)
		secret, data := manifestIn(t, got.Out)
		trusted, err := report.ParseTrustedKeys("", data)
		mustSucceed(t, err)
		if diff := cmp.Diff([]string{key.String()}, trusted.IDs()); diff != "" || secret.Name != "promotion-keys" || data["staging-eu.pub"] == nil {
			t.Errorf("the public key is another one: %s, %s", diff, got.Out)
		}
		want := answer{Out: got.Out, Err: `✔ Secret shop-prod/promotion-signing-key has the new private key KEY
► start the controller here with --cluster-name=staging-eu --signing-key-secret=promotion-signing-key
► add the public key to Secret promotion-keys of the clusters with the environments after those of staging-eu
`}
		got.Err = withoutFingerprints(got.Err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestKeysCreateOverwritesNoKey(t *testing.T) {
	m := newInMemory(t, controllerWith(fixture.Namespace, "--cluster-name=staging-eu"), secretWith("promotion-signing-key", map[string][]byte{"identity.key": []byte("mine")}))
	want := answer{Err: `✗ Secret shop-prod/promotion-signing-key exists already, and is not overwritten: others trust its key
    ► to replace it, create a second one: kubectl rollouts keys create --name promotion-signing-key-2 -n shop-prod
    ► its public key: kubectl rollouts keys public --name promotion-signing-key -n shop-prod
`, Code: program.No}
	if diff := cmp.Diff(want, m.run(t, "keys", "create")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if key := string(m.secret(t, "promotion-signing-key")["identity.key"]); key != "mine" {
		t.Errorf("the key is %q", key)
	}
}

func TestKeysCreateGivesASecondKeyAnEntryOfItsOwn(t *testing.T) {
	m := newInMemory(t, controllerWith(fixture.Namespace, "--cluster-name=staging-eu", "--signing-key-secret=promotion-signing-key"))
	got := m.run(t, "keys", "create", "--name", "promotion-signing-key-2")
	if _, data := manifestIn(t, got.Out); data["staging-eu.promotion-signing-key-2.pub"] == nil {
		t.Errorf("got %s", got.Out)
	}
}

func TestKeysCreateExports(t *testing.T) {
	m := newInMemory(t)
	file := filepath.Join(t.TempDir(), "promotion-keys.yaml")
	command := []string{"keys", "create", "--cluster-name", "staging-eu", "--export", "--public", file}
	got := m.run(t, command...)
	_, private := manifestIn(t, got.Out)
	key, err := report.ParseSigningKey(private["identity.key"])
	mustSucceed(t, err)
	content, err := os.ReadFile(file)
	mustSucceed(t, err)
	_, public := manifestIn(t, string(content))
	trusted, err := report.ParseTrustedKeys("", public)
	mustSucceed(t, err)
	if diff := cmp.Diff([]string{key.String()}, trusted.IDs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	secrets := &corev1.SecretList{}
	mustSucceed(t, m.client.List(t.Context(), secrets))
	if len(secrets.Items) > 0 {
		t.Errorf("the cluster has %v", secrets.Items)
	}
	if again := m.run(t, command...); again.Out != "" || again.Code != program.Failed || !strings.Contains(again.Err, "file exists") {
		t.Errorf("the file is overwritten: %v", again)
	}
}

func TestKeysCreateSaysWhatIsMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"the cluster": {nil, "✗ the controller has no --cluster-name yet: say how reports are to call this cluster, with --cluster-name\n"},
		"a file":      {[]string{"--cluster-name=a", "--export"}, "✗ say which new file gets the public key, with --public: the output gets the private key\n"},
		"algorithm":   {[]string{"--cluster-name=a", "--algorithm=rsa"}, "✗ --algorithm: the algorithm is ed25519 or ecdsa, not \"rsa\"\n"},
		"name":        {[]string{"--cluster-name=a/b"}, "✗ \"a/b\" cannot be the name of a cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newInMemory(t, controllerWith(fixture.Namespace))
			got := m.run(t, append([]string{"keys", "create"}, tt.args...)...)
			if got.Out != "" || got.Code != program.Failed || !strings.HasPrefix(got.Err, tt.want) {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

func TestKeysPublicPrintsWhatCreateHasPrinted(t *testing.T) {
	m := newInMemory(t, controllerWith(fixture.Namespace, "--cluster-name=staging-eu", "--signing-key-secret=signer"))
	created := m.run(t, "keys", "create", "--name", "signer")
	if diff := cmp.Diff(answer{Out: created.Out}, m.run(t, "keys", "public")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := answer{Err: "✗ there is no Secret shop-prod/other\n", Code: program.Failed}
	if diff := cmp.Diff(want, m.run(t, "keys", "public", "--name", "other")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeysListComparesKeys(t *testing.T) {
	m := newInMemory(t, controllerWith(fixture.Namespace, "--cluster-name=staging-eu", "--signing-key-secret=promotion-signing-key", "--trusted-keys-secret=promotion-keys"))
	_, public := manifestIn(t, m.run(t, "keys", "create").Out)
	public["broken.pub"], public["notes.txt"], public["any.pub"] = []byte("ssh-ed25519 AAAA"), []byte("x"), public["staging-eu.pub"]
	public["staging-eu.second.pub"] = public["staging-eu.pub"]
	mustSucceed(t, m.client.Create(t.Context(), secretWith("promotion-keys", public)))
	got := m.run(t, "keys", "list")
	ids := fingerprint.FindAllString(got.Out, -1)
	if len(ids) != 4 || len(slices.Compact(ids)) != 1 {
		t.Fatalf("the keys are %q", ids)
	}
	want := answer{
		Out: `KEY  USE         CLUSTER     SECRET                 ENTRY
KEY  signs       staging-eu  promotion-signing-key  identity.key
KEY  is trusted  any         promotion-keys         any.pub
KEY  is trusted  staging-eu  promotion-keys         staging-eu.pub
KEY  is trusted  staging-eu  promotion-keys         staging-eu.second.pub
`,
		Err:  "✗ read broken.pub of Secret promotion-keys: it is not a PUBLIC KEY in PEM\n",
		Code: program.No,
	}
	got.Out = regexp.MustCompile("^KEY +").ReplaceAllString(withoutFingerprints(got.Out), "KEY  ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeysListSaysWhatTheControllerDoesNotUse(t *testing.T) {
	want := answer{Err: `⚠ the controller has no --signing-key-secret: it signs no reports
⚠ the controller has no --trusted-keys-secret: it trusts only keys that an Environment names
`}
	if diff := cmp.Diff(want, newInMemory(t, controllerWith(fixture.Namespace)).run(t, "keys", "list")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
