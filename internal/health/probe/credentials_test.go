// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// secret returns a Secret of the namespace team that may be sent.
func secret(name string, data ...string) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.HealthCredentialsLabel: "true"},
	}, Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		made.Data[data[i]] = []byte(data[i+1])
	}
	return made
}

func withLogin(name string) v1alpha1.RequestSpec {
	return v1alpha1.RequestSpec{SecretRef: &v1alpha1.ObjectName{Name: name}}
}

func withCertificates(name string) v1alpha1.RequestSpec {
	return v1alpha1.RequestSpec{CertSecretRef: &v1alpha1.ObjectName{Name: name}}
}

// session opens a session to a server on this machine.
func session(t *testing.T, address string, credentials probe.Credentials) *probe.Session {
	t.Helper()
	g := NewWithT(t)
	list, err := destination.List{}.With(address)
	g.Expect(err).NotTo(HaveOccurred())
	target, err := list.Allowed("spec.http.url", address)
	g.Expect(err).NotTo(HaveOccurred())
	guard := destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	opened, err := probe.Open(t.Context(), guard, probe.Options{Target: target, Credentials: credentials, MostOfBody: 100})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(opened.Close)
	return opened
}

func TestCredentialsAreSent(t *testing.T) {
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"a token":               {secret("a", "token", "abc"), "Bearer abc"},
		"a token from a file":   {secret("a", "token", "abc\n"), "Bearer abc"},
		"a user and a password": {secret("a", "username", "shop", "password", "p"), "Basic c2hvcDpw"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
			defer server.Close()
			credentials, err := probe.ReadCredentials(t.Context(), fake.NewFakeClient(test.secret), "spec.http", "team", withLogin("a"))
			g.Expect(err).NotTo(HaveOccurred())
			response, err := session(t, server.URL, credentials).Client().Get(server.URL)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(got).To(Equal(test.want))
			g.Expect(fmt.Sprintf("%v %+v %#v %s", credentials, credentials, credentials, credentials)).NotTo(ContainSubstring("abc"))
		})
	}
}

func TestCredentialsReachOnlyTheDestination(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	credentials, err := probe.ReadCredentials(t.Context(), fake.NewFakeClient(secret("a", "token", "abc")), "spec.http", "team", withLogin("a"))
	g.Expect(err).NotTo(HaveOccurred())
	opened := session(t, server.URL, credentials)

	response, err := opened.Client().Get(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(opened.Status()).To(Equal(http.StatusTemporaryRedirect))
	_, err = opened.Client().Get(other.URL) //nolint:bodyclose // there is no response
	g.Expect(err).To(MatchError(ContainSubstring("the request is for another host than the destination")))
	g.Expect(asked).To(Equal(0))
}

func TestCredentialsThatMayNotBeUsedAreAProblem(t *testing.T) {
	unlabelled := secret("a", "token", "abc")
	unlabelled.Labels = nil
	elsewhere := secret("a", "token", "abc")
	elsewhere.Namespace = "other"
	off := secret("a", "token", "abc")
	off.Labels[v1alpha1.HealthCredentialsLabel] = "false"
	const keys = "spec.http.secretRef: Secret a needs either the key token, or the keys username and password"
	const label = `spec.http.secretRef: Secret a may not be sent; if it should be, give it the label rollout-controller.kuberik.com/health-credentials: "true"`
	const pems = "spec.http.certSecretRef: Secret a needs ca.crt, or tls.crt with tls.key, with valid PEM"
	for name, test := range map[string]struct {
		secret *corev1.Secret
		spec   v1alpha1.RequestSpec
		want   string
	}{
		"without the label":        {unlabelled, withLogin("a"), label},
		"with another value of it": {off, withLogin("a"), label},
		"of another namespace":     {elsewhere, withLogin("a"), "spec.http.secretRef: Secret a does not exist in this namespace"},
		"without keys":             {secret("a"), withLogin("a"), keys},
		"with half a login":        {secret("a", "username", "shop"), withLogin("a"), keys},
		"with two logins":          {secret("a", "token", "abc", "username", "shop", "password", "p"), withLogin("a"), keys},
		"with an empty token":      {secret("a", "token", "\n"), withLogin("a"), "spec.http.secretRef: Secret a has a token that is not one line of printable ASCII"},
		"with a token of lines":    {secret("a", "token", "a\r\nX: b"), withLogin("a"), "spec.http.secretRef: Secret a has a token that is not one line of printable ASCII"},
		"without certificates":     {secret("a"), withCertificates("a"), pems},
		"with broken certificates": {secret("a", "ca.crt", "abc"), withCertificates("a"), pems},
		"with half a pair":         {secret("a", "tls.crt", "abc"), withCertificates("a"), pems},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := probe.ReadCredentials(t.Context(), fake.NewFakeClient(test.secret), "spec.http", "team", test.spec)
			problem, ok := health.IsProblem(err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(problem.Text).To(Equal(test.want))
		})
	}
}

func TestSecretThatCannotBeReadIsNotMisunderstood(t *testing.T) {
	g := NewWithT(t)
	failing := func(err error) client.Reader {
		return interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
		})
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil)
	_, err := probe.ReadCredentials(t.Context(), failing(forbidden), "spec.http", "team", withLogin("a"))
	problem, ok := health.IsProblem(err)
	g.Expect(ok).To(BeTrue())
	g.Expect(problem.Text).To(ContainSubstring("bind the ClusterRole rollout-controller-health-credentials-role"))

	_, err = probe.ReadCredentials(t.Context(), failing(context.DeadlineExceeded), "spec.http", "team", withLogin("a"))
	_, ok = health.IsProblem(err)
	g.Expect(ok).To(BeFalse())
	g.Expect(probe.IsUnreachable(err)).To(BeFalse(), "the API server is not the destination")
	g.Expect(probe.Cause(err)).To(Equal("no request is sent, because this controller cannot read what it needs: see its log"))
}

func TestCertificatesAreUsed(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	credentials, err := probe.ReadCredentials(t.Context(), fake.NewFakeClient(secret("a", "ca.crt", authority)), "spec.http", "team", withCertificates("a"))
	g.Expect(err).NotTo(HaveOccurred())
	response, err := session(t, server.URL, credentials).Client().Get(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
}

func TestHeadersThatCannotBeSetAreAProblem(t *testing.T) {
	for name, header := range map[string]v1alpha1.Header{
		"credentials":           {Name: "Authorization", Value: "a"},
		"in other letters":      {Name: "aUTHORIZATION", Value: "a"},
		"another host":          {Name: "host", Value: "a"},
		"cookies":               {Name: "Cookie", Value: "a"},
		"of the connection":     {Name: "Transfer-Encoding", Value: "chunked"},
		"of another protocol":   {Name: "Upgrade", Value: "h2c"},
		"of the encoding":       {Name: "Accept-Encoding", Value: "br"},
		"with a second line":    {Name: "X-A", Value: "a\r\nHost: b"},
		"with a zero":           {Name: "X-A", Value: "a\x00"},
		"with other characters": {Name: "X-A", Value: "ä"},
		"with a space":          {Name: "Host ", Value: "a"},
		"without a name":        {Value: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := probe.Headers("spec.http", []v1alpha1.Header{header})
			_, ok := health.IsProblem(err)
			NewWithT(t).Expect(ok).To(BeTrue())
		})
	}
}

func TestCauseSaysNothingOfOthers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(probe.Cause(&url.Error{Op: "Get", URL: "https://secret.example.com", Err: errors.New("text of a server")})).To(
		Equal("the request failed: see the log of the controller"))
	g.Expect(probe.IsUnreachable(context.Canceled)).To(BeFalse(), "the controller ends")
}

func TestOwnSecretMayHaveAnyOfItsParts(t *testing.T) {
	const flag = "--prometheus-credentials: "
	for name, tt := range map[string]struct {
		data    map[string]string
		headers http.Header
		problem string
	}{
		"a token":             {map[string]string{"token": "x"}, http.Header{}, ""},
		"a login":             {map[string]string{"username": "x", "password": "y"}, http.Header{}, ""},
		"only headers":        {map[string]string{"headers": "X-Scope-OrgID: shop\n\nX-Team:web\n"}, http.Header{"X-Scope-Orgid": {"shop"}, "X-Team": {"web"}}, ""},
		"nothing":             {nil, http.Header{}, ""},
		"half a login":        {map[string]string{"username": "x"}, nil, flag + "the Secret needs either the key token, or the keys username and password"},
		"a token of lines":    {map[string]string{"token": "a\nb"}, nil, flag + "the Secret has a token that is not one line of printable ASCII"},
		"no certificate":      {map[string]string{"ca.crt": "x"}, nil, flag + "the Secret needs ca.crt, or tls.crt with tls.key, with valid PEM"},
		"no header":           {map[string]string{"headers": "shop"}, nil, flag + "the key headers of the Secret has a line that is not Name: value"},
		"a header that is no": {map[string]string{"headers": "Host: x"}, nil, flag + "the key headers of the Secret: Host cannot be set"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kuberik-system", Name: "own"}, Data: map[string][]byte{}}
			for key, value := range tt.data {
				own.Data[key] = []byte(value)
			}
			reader := fake.NewClientBuilder().WithObjects(own).Build()
			_, headers, err := probe.ReadOwn(t.Context(), reader, "--prometheus-credentials", client.ObjectKeyFromObject(own))
			if tt.problem != "" {
				g.Expect(err).To(MatchError(HavePrefix(tt.problem)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(headers).To(Equal(tt.headers))
		})
	}
}
